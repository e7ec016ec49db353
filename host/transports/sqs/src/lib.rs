//! Amazon SQS and SNS to SQS.
