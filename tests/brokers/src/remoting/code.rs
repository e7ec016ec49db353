//! The numbers of RocketMQ's requests and answers, those that tests name.

/// Stands for every request, in a rule and in a count.
pub const ANY: i32 = -1;

/// Sends one message.
pub const SEND_MESSAGE: i32 = 10;
/// Sends one message, with field names of one letter.
pub const SEND_MESSAGE_V2: i32 = 310;
/// Sends several messages.
pub const SEND_BATCH_MESSAGE: i32 = 320;
/// Reads messages of one queue, of which the client keeps the offset.
pub const PULL_MESSAGE: i32 = 11;
/// Reads the offset of a group.
pub const QUERY_CONSUMER_OFFSET: i32 = 14;
/// Writes the offset of a group.
pub const UPDATE_CONSUMER_OFFSET: i32 = 15;
/// Takes messages with a lease.
pub const POP_MESSAGE: i32 = 200_050;
/// Ends the lease of one message, done.
pub const ACK_MESSAGE: i32 = 200_051;
/// Ends the lease of several messages, done.
pub const BATCH_ACK_MESSAGE: i32 = 200_151;
/// Changes how long a lease lasts from now.
pub const CHANGE_MESSAGE_INVISIBLETIME: i32 = 200_053;
/// Waits for messages without taking any.
pub const NOTIFICATION: i32 = 200_054;
/// Sends a message of a group back, to be given again later.
pub const CONSUMER_SEND_MSG_BACK: i32 = 36;
/// Takes back a message that is not due yet.
pub const RECALL_MESSAGE: i32 = 370;
/// Makes a topic or changes it.
pub const UPDATE_AND_CREATE_TOPIC: i32 = 17;
/// Makes a group or changes it.
pub const UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: i32 = 200;
/// Removes a topic from a broker.
pub const DELETE_TOPIC_IN_BROKER: i32 = 215;
/// Reads the settings of a topic.
pub const GET_TOPIC_CONFIG: i32 = 351;
/// Reads the settings of a group.
pub const GET_SUBSCRIPTIONGROUP_CONFIG: i32 = 352;
/// Tells the broker who the client is and what it reads.
pub const HEART_BEAT: i32 = 34;
/// Tells the broker that the client leaves.
pub const UNREGISTER_CLIENT: i32 = 35;
/// Reads how a broker is.
pub const GET_BROKER_RUNTIME_INFO: i32 = 28;
/// Asks the name server for the brokers and queues of a topic.
pub const GET_ROUTEINFO_BY_TOPIC: i32 = 105;
/// Asks the name server for all brokers.
pub const GET_BROKER_CLUSTER_INFO: i32 = 106;
/// Asks which queues a client should read.
pub const QUERY_ASSIGNMENT: i32 = 400;

/// The answer: done.
pub const SUCCESS: i32 = 0;
/// The answer: the server is broken.
pub const SYSTEM_ERROR: i32 = 1;
/// The answer: too much to do.
pub const SYSTEM_BUSY: i32 = 2;
/// The answer: no such request.
pub const REQUEST_CODE_NOT_SUPPORTED: i32 = 3;
/// The answer: done, but not on disk in time.
pub const FLUSH_DISK_TIMEOUT: i32 = 10;
/// The answer: the message is too large or has wrong properties.
pub const MESSAGE_ILLEGAL: i32 = 13;
/// The answer: the broker can't now.
pub const SERVICE_NOT_AVAILABLE: i32 = 14;
/// The answer: not with these rights.
pub const NO_PERMISSION: i32 = 16;
/// The answer: no such topic.
pub const TOPIC_NOT_EXIST: i32 = 17;
/// The answer: nothing to read.
pub const PULL_NOT_FOUND: i32 = 19;
/// The answer: no such group.
pub const SUBSCRIPTION_GROUP_NOT_EXIST: i32 = 26;
/// The answer: nothing came while it waited.
pub const POLLING_TIMEOUT: i32 = 210;
