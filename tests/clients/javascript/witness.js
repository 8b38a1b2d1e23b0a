// KafkaJS as a witness: one JSON request per line in, one JSON answer per line out. The requests are those of
// tests/clients/driver.py; it has no reader, because KafkaJS reads in consumer groups only.

const readline = require('node:readline')
const { CompressionCodecs, CompressionTypes, ConfigResourceTypes, Kafka, Partitioners, logLevel } = require('kafkajs')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4js')
const xxhash = require('lz4js/xxh32.js')
const { ZstdCodec } = require('zstd-codec')

CompressionCodecs[CompressionTypes.Snappy] = snappy
// Java takes frames of independent blocks only, and lz4js does not say that its single block is one.
const sayIndependent = frame => {
  frame[4] |= 0x20
  frame[6] = xxhash.hash(0, frame, 4, 2) >> 8
  return frame
}
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async encoder => Buffer.from(sayIndependent(lz4.compress(encoder.buffer))),
  decompress: async buffer => Buffer.from(lz4.decompress(buffer)),
})
const zstd = new Promise(resolve => ZstdCodec.run(resolve))
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => Buffer.from(new (await zstd).Simple().compress(encoder.buffer)),
  decompress: async buffer => Buffer.from(new (await zstd).Simple().decompress(buffer)),
})

const COMPRESSIONS = {
  none: CompressionTypes.None,
  gzip: CompressionTypes.GZIP,
  snappy: CompressionTypes.Snappy,
  lz4: CompressionTypes.LZ4,
  zstd: CompressionTypes.ZSTD,
}

const brokers = process.argv[2].split(',')
const kafka = new Kafka({ clientId: 'witness', brokers, logLevel: logLevel.NOTHING })
const admin = kafka.admin()

// JSON has no bytes: they travel in Base64, and null stays null.
const octets = text => (text === null ? null : Buffer.from(text, 'base64'))

const headersOf = pairs => {
  const headers = {}
  for (const [name, value] of pairs) {
    headers[name] = name in headers ? [headers[name], octets(value)].flat() : octets(value)
  }
  return headers
}

const withProducer = async (settings, use) => {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, ...settings })
  await producer.connect()
  try {
    return await use(producer)
  } finally {
    await producer.disconnect()
  }
}

const send = async (producer, topic, messages, compression) => {
  const [answer] = await producer.send({ topic, messages, acks: -1, compression })
  return messages.map((_, number) => [answer.partition, Number(answer.baseOffset) + number])
}

const HANDLERS = {
  write: ({ topic, messages, partition, compression, idempotent }) =>
    withProducer({ idempotent, maxInFlightRequests: idempotent ? 1 : undefined }, async producer => {
      const wanted = messages.map(({ key, value, headers }) => ({
        key: octets(key),
        value: octets(value),
        headers: headersOf(headers),
        partition: partition ?? undefined,
      }))
      if (partition !== null) return send(producer, topic, wanted, COMPRESSIONS[compression])
      // An answer names the first offset per partition, not per message: each is sent alone.
      const places = []
      for (const message of wanted) places.push(...(await send(producer, topic, [message], COMPRESSIONS[compression])))
      return places
    }),

  group: async ({ topic }) => {
    const consumer = kafka.consumer({ groupId: 'a-group' })
    try {
      await consumer.connect()
      await consumer.subscribe({ topics: [topic] })
      const crash = new Promise((_, reject) => consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error)))
      const running = consumer.run({ eachMessage: async () => {} }).then(() => crash)
      return await Promise.race([running, crash])
    } finally {
      await consumer.disconnect()
    }
  },

  transactions: () =>
    withProducer({ transactionalId: 'a-transaction', idempotent: true, maxInFlightRequests: 1 }, async producer => {
      await producer.transaction()
      return 'transactions were taken'
    }),

  create_topic: ({ topic, partitions, replicas, settings }) =>
    admin.createTopics({
      topics: [
        {
          topic,
          numPartitions: partitions,
          replicationFactor: replicas,
          configEntries: Object.entries(settings).map(([name, value]) => ({ name, value })),
        },
      ],
    }),

  topic_names: () => admin.listTopics(),

  describe_topic: async ({ topic }) => {
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    return topics[0].partitions
      .sort((one, other) => one.partitionId - other.partitionId)
      .map(({ leader, replicas, isr }) => ({ leader, replicas, in_sync: isr }))
  },

  delete_topic: ({ topic }) => admin.deleteTopics({ topics: [topic] }),

  add_partitions: ({ topic, total }) => admin.createPartitions({ topicPartitions: [{ topic, count: total }] }),

  settings: async ({ topic }) => {
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic }]
    const answer = await admin.describeConfigs({ resources, includeSynonyms: false })
    return Object.fromEntries(answer.resources[0].configEntries.map(({ configName, configValue }) => [configName, configValue]))
  },

  change_settings: ({ topic, settings }) =>
    admin.alterConfigs({
      validateOnly: false,
      resources: [
        {
          type: ConfigResourceTypes.TOPIC,
          name: topic,
          configEntries: Object.entries(settings).map(([name, value]) => ({ name, value })),
        },
      ],
    }),

  delete_records: async ({ topic, before }) => {
    await admin.fetchTopicOffsets(topic) // else the client does not know the partition's leader, and does not ask
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(before) }] })
    const [{ low }] = await admin.fetchTopicOffsets(topic)
    return Number(low)
  },

  describe_cluster: async () => {
    const view = await admin.describeCluster()
    return {
      addresses: Object.fromEntries(view.brokers.map(({ nodeId, host, port }) => [nodeId, `${host}:${port}`])),
      controller: view.controller,
    }
  },
}

const main = async () => {
  await admin.connect()
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line)
    const answer = {}
    try {
      answer.result = (await HANDLERS[asked.do](asked)) ?? null
    } catch (error) {
      answer.error = `${error.type ?? error.name}: ${error.message}`
    }
    console.log(JSON.stringify(answer))
  }
  await admin.disconnect()
}

main()
