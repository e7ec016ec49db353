;; Honest, but asks for a delay of 2^64 - 1 ms.
(core module $guest
  (memory (export "memory") 1)
  ;; The outcome: case 1, `some`, the number.
  (data (i32.const 16) "\01\00\00\00\00\00\00\00" "\01\00\00\00\00\00\00\00" "\ff\ff\ff\ff\ff\ff\ff\ff")
  (func (export "realloc") (param i32 i32 i32 i32) (result i32)
    (i32.const 1024))
  (func (export "handle") (param $message i32) (result i32)
    (i32.const 16))
  (func (export "post") (param $outcome i32)))
