;; A component that exports something, but no handler.
(component
  (core module $guest (func (export "run")))
  (core instance $instance (instantiate $guest))
  (alias core export $instance "run" (core func $run'))
  (func $run (canon lift (core func $run')))
  (export "run" (func $run)))
