;; Rejects with a description that reaches far past the end of its memory.
(core module $guest
  (memory (export "memory") 1)
  ;; The outcome: case 2, the reason, the description's place and length.
  (data (i32.const 16) "\02\00\00\00\00\00\00\00" "\00\00\00\00" "\dc\ff\00\00" "\ff\ff\ff\7f")
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (i32.const 16))
  (func (export "post") (param $outcome i32)))
