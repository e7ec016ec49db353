;; A handler as a plug-in of extism, by its own interface: it takes the message into its memory, as a component is given
;; one, and acknowledges it by one byte.
(module
  (import "extism:host/env" "input_length" (func $input_length (result i64)))
  (import "extism:host/env" "input_load_u64" (func $input_load (param i64) (result i64)))
  (import "extism:host/env" "input_load_u8" (func $input_load_byte (param i64) (result i32)))
  (import "extism:host/env" "alloc" (func $alloc (param i64) (result i64)))
  (import "extism:host/env" "store_u8" (func $store (param i64 i32)))
  (import "extism:host/env" "output_set" (func $output_set (param i64 i64)))
  (memory (export "memory") 32)
  (func (export "handle") (result i32)
    (local $length i64) (local $at i64) (local $answer i64)
    (local.set $length (call $input_length))
    (block $words_done
      (loop $words
        (br_if $words_done
          (i64.gt_u (i64.add (local.get $at) (i64.const 8)) (local.get $length)))
        (i64.store offset=1024 (i32.wrap_i64 (local.get $at)) (call $input_load (local.get $at)))
        (local.set $at (i64.add (local.get $at) (i64.const 8)))
        (br $words)))
    (block $bytes_done
      (loop $bytes
        (br_if $bytes_done (i64.ge_u (local.get $at) (local.get $length)))
        (i32.store8 offset=1024
          (i32.wrap_i64 (local.get $at)) (call $input_load_byte (local.get $at)))
        (local.set $at (i64.add (local.get $at) (i64.const 1)))
        (br $bytes)))
    (local.set $answer (call $alloc (i64.const 1)))
    (call $store (local.get $answer) (i32.const 0))
    (call $output_set (local.get $answer) (i64.const 1))
    (i32.const 0)))
