;; Takes all memory that it can get in its start function, then traps.
(core module $guest
  (memory (export "memory") 1)
  (func $start
    (loop $more
      (br_if $more (i32.ne (i32.const -1) (memory.grow (i32.const 16)))))
    (unreachable))
  (start $start)
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (i32.const 16))
  (func (export "post") (param $outcome i32)))
