;; A core module, as other targets than wasm32-wasip2 make it: no component.
(module
  (memory (export "memory") 1)
  (func (export "handle") (param i32) (result i32) (i32.const 0)))
