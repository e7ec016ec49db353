;; Says that the outcome lies where none can lie.
(core module $guest
  (memory (export "memory") 1)
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (i32.const 17))
  (func (export "post") (param $outcome i32)))
