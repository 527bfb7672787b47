// A word count by Kafka Streams with exactly_once_v2, against the broker of FLECHTWERK_TEST_BROKERS: 10,000 lines in two
// partitions, two instances of which one ends in the middle. With no cache every word has one result for each time that it
// comes, counting from one without a gap: what is missing or twice is seen. Called by scripts/dev-broker-clients.

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

public class WordCount {
    static final int LINES = 10_000;
    static final int PARTITIONS = 2;
    static final Duration PATIENCE = Duration.ofSeconds(300);
    static final String SERVERS = System.getenv("FLECHTWERK_TEST_BROKERS");

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", SERVERS))) {
            admin.createTopics(List.of(new NewTopic("lines", PARTITIONS, (short) 1), new NewTopic("counts", PARTITIONS, (short) 1)))
                .all().get();
        }
        Map<String, Long> expected = write();
        long words = expected.values().stream().mapToLong(Long::longValue).sum();

        KafkaStreams first = start("first");
        KafkaStreams second = start("second");
        boolean exact;
        try (KafkaConsumer<String, Long> consumer = reader()) {
            Map<String, Long> seen = new HashMap<>();
            long start = System.nanoTime();
            long read = 0;
            boolean ended = false;
            while (read < words) {
                check(System.nanoTime() - start < PATIENCE.toNanos(), "only " + read + " of " + words + " results in time");
                read += count(consumer, seen);
                if (!ended && read > words / 3) {
                    first.close(Duration.ofSeconds(60));
                    ended = true;
                }
            }
            second.close(Duration.ofSeconds(60));
            // What came twice would come here.
            read += count(consumer, seen);
            read += count(consumer, seen);
            exact = read == words && seen.equals(expected);
            System.out.printf("%d lines, %d words, %d results: %s%n", LINES, words, read, exact ? "exact" : "not exact");
        } finally {
            first.close(Duration.ofSeconds(10));
            second.close(Duration.ofSeconds(10));
        }
        System.exit(exact ? 0 : 1);
    }

    /** Writes the lines; how often each word is in them. */
    static Map<String, Long> write() {
        Map<String, Long> expected = new HashMap<>();
        Random random = new Random(7);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", SERVERS);
        settings.put("compression.type", "lz4");
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int line = 0; line < LINES; line++) {
                List<String> words = new ArrayList<>();
                for (int i = random.nextInt(4); i >= 0; i--) {
                    words.add("word-" + random.nextInt(200));
                }
                words.forEach(word -> expected.merge(word, 1L, Long::sum));
                producer.send(new ProducerRecord<>("lines", line % PARTITIONS, null, String.join(" ", words)));
            }
            producer.flush();
        }
        return expected;
    }

    static KafkaStreams start(String instance) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("lines", Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("totals"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .to("counts", Produced.with(Serdes.String(), Serdes.Long()));
        Topology topology = builder.build();

        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "word-count");
        settings.put(StreamsConfig.CLIENT_ID_CONFIG, instance);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, SERVERS);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 50);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, java.nio.file.Files.createTempDirectory("word-count").toString());
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.consumerPrefix("max.poll.records"), 100);
        KafkaStreams streams = new KafkaStreams(topology, settings);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            System.exit(1);
            return StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;
        });
        streams.start();
        return streams;
    }

    static KafkaConsumer<String, Long> reader() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", SERVERS);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new LongDeserializer());
        List<TopicPartition> all = new ArrayList<>();
        for (int partition = 0; partition < PARTITIONS; partition++) {
            all.add(new TopicPartition("counts", partition));
        }
        consumer.assign(all);
        consumer.seekToBeginning(all);
        return consumer;
    }

    /** Reads on; each word's counts must follow each other. */
    static int count(KafkaConsumer<String, Long> consumer, Map<String, Long> seen) {
        int read = 0;
        for (ConsumerRecord<String, Long> record : consumer.poll(Duration.ofMillis(500))) {
            long before = seen.getOrDefault(record.key(), 0L);
            check(record.value() == before + 1, record.key() + ": " + record.value() + " comes after " + before);
            seen.put(record.key(), record.value());
            read++;
        }
        return read;
    }

    static void check(boolean holds, String otherwise) {
        if (!holds) {
            System.out.println("failed: " + otherwise);
            System.exit(1);
        }
    }
}
