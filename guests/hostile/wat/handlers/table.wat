;; Grows a table until it gets no more, then traps.
(core module $guest
  (memory (export "memory") 1)
  (table $table 1 funcref)
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (loop $more
      (br_if $more (i32.ne (i32.const -1)
        (table.grow $table (ref.null func) (i32.const 10000)))))
    (unreachable))
  (func (export "post") (param $outcome i32)))
