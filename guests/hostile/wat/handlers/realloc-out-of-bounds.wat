;; Tells the host to put the message past the end of its memory.
(core module $guest
  (memory (export "memory") 1)
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const -8))
  (func (export "handle") (param $message i32) (result i32)
    (i32.const 16))
  (func (export "post") (param $outcome i32)))
