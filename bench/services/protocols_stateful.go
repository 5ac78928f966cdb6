package services

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"time"
)

// Protocols of Cassandra and Kafka. Their makers' own clients send several requests at once, batch and repeat them: what a request waits
// for would be in their figures only in part. These send one, and wait for its answer, as the other protocols do.

// Operations of version 4 of CQL's binary protocol (native_protocol_v4.spec in Cassandra's documentation).
const (
	cqlRequest = 4 // the version, as a client says it
	cqlError   = 0x00
	cqlStartup = 0x01
	cqlReady   = 0x02
	cqlQuery   = 0x07
	cqlResult  = 0x08
	cqlOne     = 0x0001 // consistency: one replica answers
)

// greetCassandra starts a session without a password.
func greetCassandra(c *bufio.ReadWriter) error {
	body := binary.BigEndian.AppendUint16(nil, 1) // one option
	for _, text := range []string{"CQL_VERSION", "3.0.0"} {
		body = append(binary.BigEndian.AppendUint16(body, uint16(len(text))), text...)
	}
	return askCassandra(c, cqlStartup, body, cqlReady)
}

// talkCassandra sends a statement and reads its answer.
func talkCassandra(c *bufio.ReadWriter, text string) error {
	body := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	body = binary.BigEndian.AppendUint16(body, cqlOne)
	return askCassandra(c, cqlQuery, append(body, 0), cqlResult)
}

// askCassandra sends a frame and reads the next, which is to be of a kind.
func askCassandra(c *bufio.ReadWriter, operation byte, body []byte, wants byte) error {
	head := binary.BigEndian.AppendUint32([]byte{cqlRequest, 0, 0, 0, operation}, uint32(len(body)))
	if err := send(c, append(head, body...)); err != nil {
		return err
	}
	const headBytes = 9
	head, err := receive(c, headBytes)
	if err != nil {
		return err
	}
	answer, err := receiveAtMost(c, "cassandra", binary.BigEndian.Uint32(head[5:]))
	switch {
	case err != nil:
		return err
	case head[4] == cqlError:
		return fmt.Errorf("cassandra: %.200q", answer)
	case head[4] != wants:
		return fmt.Errorf("cassandra: operation %#x instead of %#x", head[4], wants)
	}
	return nil
}

// receiveAtMost reads an answer whose length the server says.
func receiveAtMost(c *bufio.ReadWriter, whose string, length uint32) ([]byte, error) {
	const most = 1 << 20
	if length > most {
		return nil, fmt.Errorf("%s: an answer of %d bytes", whose, length)
	}
	return receive(c, int(length))
}

// Of Kafka's protocol: version 3 of a produce request, the oldest that brokers of today take, with a batch of version 2
// (kafka.apache.org/protocol).
const (
	kafkaProduceKey, kafkaProduceVersion = 0, 3
	kafkaBatchVersion                    = 2
	kafkaAllReplicas                     = -1
	kafkaTimeoutMs                       = 30_000
	kafkaNone                            = 0xffff_ffff_ffff_ffff // -1: no producer id
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// kafkaProduce sends one message to a partition of a topic that draw chooses, and waits until all replicas have it. text is the topic, how
// many partitions it has, and the message, with spaces between them.
func kafkaProduce(draw func(n int) int, now func() time.Time) conversation {
	return func(c *bufio.ReadWriter, text string) error {
		fields := strings.SplitN(text, " ", 3)
		if len(fields) < 3 {
			return fmt.Errorf("kafka: %.60q: give a topic, its number of partitions, and a message", text)
		}
		partitions, err := strconv.Atoi(fields[1])
		if err != nil || partitions < 1 {
			return fmt.Errorf("kafka: %.20q partitions: give a number above 0", fields[1])
		}
		request := kafkaRequest(fields[0], uint32(draw(partitions)), kafkaBatch(fields[2], now()))
		if err := send(c, append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), request...)); err != nil {
			return err
		}
		length, err := receive(c, 4)
		if err != nil {
			return err
		}
		answer, err := receiveAtMost(c, "kafka", binary.BigEndian.Uint32(length))
		if err != nil {
			return err
		}
		return kafkaAnswered(answer, fields[0])
	}
}

// kafkaRequest asks to produce a batch.
func kafkaRequest(topic string, partition uint32, batch []byte) []byte {
	be := binary.BigEndian
	request := be.AppendUint16(nil, kafkaProduceKey)
	request = be.AppendUint16(request, kafkaProduceVersion)
	request = be.AppendUint32(request, 0)                     // which request: one at a time
	request = append(be.AppendUint16(request, 5), "study"...) // who
	request = be.AppendUint16(request, 0xffff)                // no transaction
	request = be.AppendUint16(request, kafkaAllReplicas&0xffff)
	request = be.AppendUint32(request, kafkaTimeoutMs)
	request = be.AppendUint32(request, 1) // topic
	request = append(be.AppendUint16(request, uint16(len(topic))), topic...)
	request = be.AppendUint32(request, 1) // partition
	request = be.AppendUint32(request, partition)
	return append(be.AppendUint32(request, uint32(len(batch))), batch...)
}

// kafkaBatch is a batch of one message without a key.
func kafkaBatch(message string, now time.Time) []byte {
	be := binary.BigEndian
	record := []byte{0, 0, 0}                // attributes, and how far its time and number are from the first one's
	record = binary.AppendVarint(record, -1) // no key
	record = binary.AppendVarint(record, int64(len(message)))
	record = append(append(record, message...), 0) // no headers
	record = append(binary.AppendVarint(nil, int64(len(record))), record...)

	summed := make([]byte, 2+4, 64+len(record)) // attributes, and the number of the last message
	for range 2 {                               // the first time and the last
		summed = be.AppendUint64(summed, uint64(now.UnixMilli()))
	}
	summed = be.AppendUint64(summed, kafkaNone)
	summed = append(summed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) // the producer's epoch and first number: none
	summed = append(be.AppendUint32(summed, 1), record...)

	rest := be.AppendUint32(nil, 0) // the leader's epoch
	rest = append(rest, kafkaBatchVersion)
	rest = append(be.AppendUint32(rest, crc32.Checksum(summed, castagnoli)), summed...)
	batch := be.AppendUint64(nil, 0) // the first number, which the broker sets
	return append(be.AppendUint32(batch, uint32(len(rest))), rest...)
}

// kafkaAnswered reads the answer to a request to produce one batch.
func kafkaAnswered(answer []byte, topic string) error {
	// The request's number, one topic with its name, one partition with its number, and what came of it.
	at := 4 + 4 + 2 + len(topic) + 4 + 4
	if len(answer) < at+2 {
		return fmt.Errorf("kafka: an answer of %d bytes", len(answer))
	}
	if code := int16(binary.BigEndian.Uint16(answer[at:])); code != 0 {
		return fmt.Errorf("kafka: error %d", code)
	}
	return nil
}
