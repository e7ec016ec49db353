;; Declares a table of ten million elements to start with.
(core module $guest
  (memory (export "memory") 1)
  (table 10000000 funcref)
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (i32.const 16))
  (func (export "post") (param $outcome i32)))
