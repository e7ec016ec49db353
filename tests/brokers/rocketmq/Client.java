import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONObject;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.store.OffsetStore;
import org.apache.rocketmq.client.consumer.store.ReadOffsetType;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageAccessor;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/**
 * RocketMQ's own client. Takes what to do as one JSON object from standard input, and prints a JSON
 * object for each message that it sent or received. Bodies are in hexadecimal.
 */
public class Client {
    private static final int SEND_TIMEOUT_MS = 10_000;
    private static final int HEARTBEAT_MS = 1_000;
    private static final int COMMIT_TIMEOUT_MS = 10_000;
    private static final int COMMIT_POLL_MS = 20;

    private final JSONObject input;
    private final RPCHook login;

    private Client(JSONObject input) {
        this.input = input;
        String key = input.getString("accessKey");
        this.login = key == null ? null
            : new AclClientRPCHook(new SessionCredentials(key, input.getString("secretKey")));
    }

    public static void main(String[] arguments) throws Exception {
        Client client = new Client(JSON.parseObject(System.in.readAllBytes()));
        int status = 0;
        try {
            client.run();
        } catch (Throwable error) {
            error.printStackTrace();
            status = 1;
        }
        System.out.flush();
        // A usual end would wait for the library's threads.
        Runtime.getRuntime().halt(status);
    }

    private void run() throws Exception {
        switch (input.getString("do")) {
            case "send" -> send();
            case "receive" -> receive();
            case "topic" -> createTopic();
            case "group" -> createGroup();
            default -> throw new IllegalArgumentException(input.getString("do"));
        }
    }

    private void send() throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer("pumphouse-test", login);
        producer.setNamesrvAddr(input.getString("namesrv"));
        producer.setSendMsgTimeout(SEND_TIMEOUT_MS);
        producer.setRetryTimesWhenSendFailed(0);
        producer.start();
        for (Object message : input.getJSONArray("messages")) {
            print(sent(send(producer, (JSONObject) message)));
        }
    }

    private SendResult send(DefaultMQProducer producer, JSONObject given) throws Exception {
        Message message = message(given);
        String group = given.getString("group");
        SendResult result = group == null ? producer.send(message)
            : producer.send(message, Client::queueOf, group);
        if (result.getSendStatus() != SendStatus.SEND_OK) {
            throw new IllegalStateException("sent with status " + result.getSendStatus());
        }
        return result;
    }

    private static MessageQueue queueOf(List<MessageQueue> queues, Message message, Object group) {
        return queues.get(Math.floorMod(group.hashCode(), queues.size()));
    }

    private Message message(JSONObject given) {
        byte[] body = HexFormat.of().parseHex(given.getString("body"));
        Message message = new Message(input.getString("topic"), body);
        if (given.containsKey("tag")) {
            message.setTags(given.getString("tag"));
        }
        List<String> keys = given.getJSONArray("keys").toList(String.class);
        if (!keys.isEmpty()) {
            message.setKeys(keys);
        }
        if (given.containsKey("group")) {
            MessageAccessor.putProperty(message, MessageConst.PROPERTY_SHARDING_KEY, given.getString("group"));
        }
        if (given.containsKey("delayMs")) {
            message.setDelayTimeMs(given.getLongValue("delayMs"));
        }
        given.getJSONObject("properties").forEach((name, value) -> message.putUserProperty(name, (String) value));
        return message;
    }

    private static Map<String, Object> sent(SendResult result) {
        Map<String, Object> line = new HashMap<>();
        line.put("id", result.getMsgId());
        line.put("broker", result.getMessageQueue().getBrokerName());
        line.put("queue", result.getMessageQueue().getQueueId());
        line.put("offset", result.getQueueOffset());
        return line;
    }

    private void receive() throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(input.getString("group"), login);
        consumer.setNamesrvAddr(input.getString("namesrv"));
        // At its start it may tell a broker too little of what it reads, and is refused until it tells again.
        consumer.setHeartbeatBrokerInterval(HEARTBEAT_MS);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        // One at a time: in the order of a queue.
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        consumer.subscribe(input.getString("topic"), "*");
        Listener listener = new Listener(input.getIntValue("count"));
        consumer.registerMessageListener(listener);
        consumer.start();
        listener.done.await(input.getLongValue("limitMs"), TimeUnit.MILLISECONDS);
        listener.left.set(0);
        commit(consumer, listener.next);
    }

    /** The group goes on behind the last message that was printed. */
    private static void commit(DefaultMQPushConsumer consumer, Map<MessageQueue, Long> next) throws Exception {
        OffsetStore offsets = consumer.getDefaultMQPushConsumerImpl().getOffsetStore();
        for (Map.Entry<MessageQueue, Long> entry : next.entrySet()) {
            await(offsets, entry, ReadOffsetType.READ_FROM_MEMORY);
            offsets.persist(entry.getKey());
            await(offsets, entry, ReadOffsetType.READ_FROM_STORE);
        }
    }

    private static void await(OffsetStore offsets, Map.Entry<MessageQueue, Long> entry, ReadOffsetType from)
        throws Exception {
        long deadline = System.currentTimeMillis() + COMMIT_TIMEOUT_MS;
        while (offsets.readOffset(entry.getKey(), from) < entry.getValue()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("the offset was not stored in time");
            }
            Thread.sleep(COMMIT_POLL_MS);
        }
    }

    private static class Listener implements MessageListenerConcurrently {
        final AtomicInteger left;
        final CountDownLatch done;
        final Map<MessageQueue, Long> next = new ConcurrentHashMap<>();

        Listener(int count) {
            this.left = new AtomicInteger(count);
            this.done = new CountDownLatch(count);
        }

        @Override
        public ConsumeConcurrentlyStatus consumeMessage(
            List<MessageExt> messages, ConsumeConcurrentlyContext context) {
            for (MessageExt message : messages) {
                if (left.getAndDecrement() <= 0) {
                    holdForGood();
                }
                print(received(message));
                next.put(context.getMessageQueue(), message.getQueueOffset() + 1);
                done.countDown();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        }

        /** An answer of any kind would take the message from the group. */
        private static void holdForGood() {
            while (true) {
                try {
                    new CountDownLatch(1).await();
                } catch (InterruptedException ignored) {
                    // The process ends soon.
                }
            }
        }
    }

    private static Map<String, Object> received(MessageExt message) {
        Map<String, Object> line = new HashMap<>();
        line.put("body", HexFormat.of().formatHex(message.getBody()));
        line.put("id", message.getMsgId());
        line.put("topic", message.getTopic());
        line.put("tag", message.getTags());
        line.put("keys", message.getKeys());
        line.put("group", message.getProperty(MessageConst.PROPERTY_SHARDING_KEY));
        line.put("reconsumeTimes", message.getReconsumeTimes());
        line.put("bornMs", message.getBornTimestamp());
        line.put("storeMs", message.getStoreTimestamp());
        line.put("broker", message.getBrokerName());
        line.put("queue", message.getQueueId());
        line.put("offset", message.getQueueOffset());
        line.put("properties", message.getProperties());
        return line;
    }

    private void createTopic() throws Exception {
        int queues = input.getIntValue("queues");
        TopicConfig topic = new TopicConfig(input.getString("topic"), queues, queues);
        topic.setAttributes(Collections.singletonMap("+message.type", input.getString("kind")));
        DefaultMQAdminExt admin = admin();
        for (String broker : input.getJSONArray("brokers").toList(String.class)) {
            admin.createAndUpdateTopicConfig(broker, topic);
        }
    }

    private void createGroup() throws Exception {
        SubscriptionGroupConfig group = new SubscriptionGroupConfig();
        group.setGroupName(input.getString("group"));
        group.setConsumeMessageOrderly(input.getBooleanValue("inOrder"));
        DefaultMQAdminExt admin = admin();
        for (String broker : input.getJSONArray("brokers").toList(String.class)) {
            admin.createAndUpdateSubscriptionGroupConfig(broker, group);
        }
    }

    private DefaultMQAdminExt admin() throws Exception {
        DefaultMQAdminExt admin = new DefaultMQAdminExt(login);
        admin.setNamesrvAddr(input.getString("namesrv"));
        admin.start();
        return admin;
    }

    private static synchronized void print(Map<String, Object> line) {
        System.out.println(JSON.toJSONString(line));
    }
}
