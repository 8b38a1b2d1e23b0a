// Kafka's own Java client as a witness: one JSON request per line in, one JSON answer per line out. Run as it is,
// by `java -cp CLASSPATH Witness.java BOOTSTRAP`; the requests are those of tests/clients/driver.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Witness {
    private static final Duration WAIT = Duration.ofSeconds(20);

    private final String bootstrap;
    private final Admin admin;
    private KafkaConsumer<byte[], byte[]> follower;

    Witness(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        ObjectMapper json = new ObjectMapper();
        Witness witness = new Witness(arguments[0]);
        PrintStream answers = System.out;
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Map<String, Object> answer = new HashMap<>();
            try {
                answer.put("result", witness.answer(json.readTree(line)));
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                answer.put("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
            }
            answers.println(json.writeValueAsString(answer));
            answers.flush();
        }
        witness.admin.close();
    }

    private Object answer(JsonNode asked) throws Exception {
        String topic = asked.path("topic").asText();
        switch (asked.get("do").asText()) {
            case "write": return write(topic, asked);
            case "read": return read(topic, asked.get("start"), asked.get("count").asInt());
            case "read_at": return readAt(topic, asked.get("offsets"));
            case "follow": return follow(topic);
            case "next": return take(follower, asked.get("count").asInt());
            case "leave": return leave();
            case "group": return askForGroup(topic);
            case "transactions": return askForTransactions();
            case "create_topic": return createTopic(topic, asked);
            case "topic_names": return admin.listTopics().names().get();
            case "describe_topic": return describeTopic(topic);
            case "delete_topic": return admin.deleteTopics(List.of(topic)).all().get();
            case "add_partitions": return addPartitions(topic, asked.get("total").asInt());
            case "settings": return settings(topic);
            case "change_settings": return changeSettings(topic, asked.get("settings"));
            case "delete_records": return deleteRecords(topic, asked.get("before").asLong());
            case "describe_cluster": return describeCluster();
            default: throw new IllegalArgumentException(asked.toString());
        }
    }

    // Writing

    private Object write(String topic, JsonNode asked) throws Exception {
        Map<String, Object> settings = new HashMap<>();
        settings.put("compression.type", asked.get("compression").asText());
        settings.put("enable.idempotence", asked.get("idempotent").asBoolean());
        settings.put("linger.ms", 10);
        List<List<Long>> places = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(settings)) {
            List<Future<RecordMetadata>> waiting = new ArrayList<>();
            for (JsonNode message : asked.get("messages")) {
                Integer partition = asked.get("partition").isNull() ? null : asked.get("partition").asInt();
                ProducerRecord<byte[], byte[]> record =
                    new ProducerRecord<>(topic, partition, octets(message.get("key")), octets(message.get("value")));
                for (JsonNode header : message.get("headers")) {
                    record.headers().add(header.get(0).asText(), octets(header.get(1)));
                }
                waiting.add(producer.send(record));
            }
            for (Future<RecordMetadata> answer : waiting) {
                places.add(List.of((long) answer.get().partition(), answer.get().offset()));
            }
        }
        return places;
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put("bootstrap.servers", bootstrap);
        all.put("acks", "all");
        all.put("max.block.ms", WAIT.toMillis());
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    // Reading

    private Object read(String topic, JsonNode start, int count) {
        try (KafkaConsumer<byte[], byte[]> consumer = reader(topic)) {
            TopicPartition place = new TopicPartition(topic, 0);
            long value = start.get("value").asLong();
            switch (start.get("kind").asText()) {
                case "beginning": consumer.seekToBeginning(List.of(place)); break;
                case "offset": consumer.seek(place, value); break;
                case "since": consumer.seek(place, consumer.offsetsForTimes(Map.of(place, value)).get(place).offset()); break;
                case "last": consumer.seek(place, consumer.endOffsets(List.of(place)).get(place) - value); break;
                default: throw new IllegalArgumentException(start.toString());
            }
            return take(consumer, count);
        }
    }

    private Object readAt(String topic, JsonNode offsets) {
        List<Object> found = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = reader(topic)) {
            for (JsonNode offset : offsets) {
                consumer.seek(new TopicPartition(topic, 0), offset.asLong());
                found.addAll(take(consumer, 1));
            }
        }
        return found;
    }

    private Object follow(String topic) {
        follower = reader(topic);
        follower.seekToEnd(follower.assignment());
        return follower.position(new TopicPartition(topic, 0));
    }

    private Object leave() {
        follower.close();
        return true;
    }

    private KafkaConsumer<byte[], byte[]> reader(String topic) {
        KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("enable.auto.commit", false));
        consumer.assign(List.of(new TopicPartition(topic, 0)));
        return consumer;
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put("bootstrap.servers", bootstrap);
        return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static List<Object> take(KafkaConsumer<byte[], byte[]> consumer, int count) {
        List<Object> found = new ArrayList<>();
        long end = System.nanoTime() + WAIT.toNanos();
        while (found.size() < count) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException(found.size() + " of " + count + " messages in time");
            }
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                if (found.size() < count) {
                    found.add(stored(record));
                }
            }
        }
        return found;
    }

    private static Object stored(ConsumerRecord<byte[], byte[]> record) {
        Map<String, Object> stored = new HashMap<>();
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers()) {
            List<Object> pair = new ArrayList<>();
            Collections.addAll(pair, header.key(), text(header.value()));
            headers.add(pair);
        }
        stored.put("offset", record.offset());
        stored.put("timestamp_ms", record.timestamp());
        stored.put("key", text(record.key()));
        stored.put("value", text(record.value()));
        stored.put("headers", headers);
        return stored;
    }

    // What is refused

    private Object askForGroup(String topic) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of("group.id", "a-group"))) {
            consumer.subscribe(List.of(topic));
            return "it was given " + consumer.poll(WAIT).count() + " messages";
        }
    }

    private Object askForTransactions() {
        try (KafkaProducer<byte[], byte[]> producer = producer(Map.of("transactional.id", "a-transaction"))) {
            producer.initTransactions();
            return "transactions were taken";
        }
    }

    // Administration

    private Object createTopic(String topic, JsonNode asked) throws Exception {
        Map<String, String> settings = new HashMap<>();
        asked.get("settings").fields().forEachRemaining(each -> settings.put(each.getKey(), each.getValue().asText()));
        NewTopic wanted = new NewTopic(topic, asked.get("partitions").asInt(), (short) asked.get("replicas").asInt());
        return admin.createTopics(List.of(wanted.configs(settings))).all().get();
    }

    private Object describeTopic(String topic) throws Exception {
        List<Object> partitions = new ArrayList<>();
        admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().forEach(partition ->
            partitions.add(Map.of(
                "leader", partition.leader().id(),
                "replicas", ids(partition.replicas()),
                "in_sync", ids(partition.isr()))));
        return partitions;
    }

    private Object addPartitions(String topic, int total) throws Exception {
        return admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(total))).all().get();
    }

    private Object settings(String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Map<String, String> found = new HashMap<>();
        admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()
            .forEach(entry -> found.put(entry.name(), entry.value()));
        return found;
    }

    private Object changeSettings(String topic, JsonNode settings) throws Exception {
        Collection<AlterConfigOp> changes = new ArrayList<>();
        settings.fields().forEachRemaining(each -> changes.add(new AlterConfigOp(
            new ConfigEntry(each.getKey(), each.getValue().asText()), AlterConfigOp.OpType.SET)));
        return admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.TOPIC, topic), changes))
            .all().get();
    }

    private Object deleteRecords(String topic, long before) throws Exception {
        TopicPartition place = new TopicPartition(topic, 0);
        return admin.deleteRecords(Map.of(place, RecordsToDelete.beforeOffset(before))).lowWatermarks().get(place).get()
            .lowWatermark();
    }

    private Object describeCluster() throws Exception {
        Map<String, String> addresses = new HashMap<>();
        for (Node node : admin.describeCluster().nodes().get()) {
            addresses.put(node.idString(), node.host() + ":" + node.port());
        }
        return Map.of("addresses", addresses, "controller", admin.describeCluster().controller().get().id());
    }

    private static List<Integer> ids(List<Node> nodes) {
        return nodes.stream().map(Node::id).collect(Collectors.toList());
    }

    // JSON has no bytes: they travel in Base64, and null stays null.

    private static byte[] octets(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static String text(byte[] octets) {
        return octets == null ? null : Base64.getEncoder().encodeToString(octets);
    }
}
