;; The frame of every handler in handlers/: the types of pumphouse:handler@1.0.0, and the export.
(component
  (import "pumphouse:handler/types@1.0.0" (instance $types
    (type $headers (list (tuple string string)))
    (type $text (option string))
    (type $millis (option u64))
    (type $bytes (list u8))
    (type $message' (record
      (field "id" string)
      (field "source" string)
      (field "delivery-count" u32)
      (field "headers" $headers)
      (field "content-type" $text)
      (field "ordering-key" $text)
      (field "published-at" $millis)
      (field "body" $bytes)))
    (export "message" (type (eq $message')))
    (type $reason' (enum "unacceptable" "delivery-error" "none"))
    (export "rejection-reason" (type $reason (eq $reason')))
    (type $rejection' (record (field "reason" $reason) (field "description" string)))
    (export "rejection" (type $rejection (eq $rejection')))
    (type $outcome' (variant (case "ack") (case "defer" $millis) (case "reject" $rejection)))
    (export "outcome" (type (eq $outcome')))))
  (alias export $types "message" (type $message))
  (alias export $types "outcome" (type $outcome))

  ;; FIELDS

  (core instance $instance (instantiate $guest))
  (alias core export $instance "memory" (core memory $memory))
  (alias core export $instance "realloc" (core func $realloc))
  (alias core export $instance "post" (core func $post))
  (alias core export $instance "handle" (core func $handle'))
  (func $handle (param "message" $message) (result $outcome)
    (canon lift (core func $handle')
      (memory $memory)
      (realloc $realloc)
      (post-return $post)))
  (instance $exports
    (export "message" (type $message))
    (export "outcome" (type $outcome))
    (export "handle" (func $handle)))
  (export "pumphouse:handler/incoming-handler@1.0.0" (instance $exports))
)
