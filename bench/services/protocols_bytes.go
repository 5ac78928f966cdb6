package services

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
)

// Protocols whose messages are bytes.

// send writes a message.
func send(c *bufio.ReadWriter, message []byte) error {
	_, _ = c.Write(message) // Flush has its error
	return c.Flush()
}

// receive reads n bytes.
func receive(c *bufio.ReadWriter, n int) ([]byte, error) {
	message := make([]byte, n)
	_, err := io.ReadFull(c, message)
	return message, err
}

// postgresProtocol is version 3.0 of the frontend/backend protocol.
const postgresProtocol = 3 << 16

// greetPostgres starts a session of the user postgres, whom the server trusts.
func greetPostgres(c *bufio.ReadWriter) error {
	body := binary.BigEndian.AppendUint32(nil, postgresProtocol)
	body = append(body, "user\x00postgres\x00database\x00postgres\x00\x00"...)
	if err := sendPostgres(c, 0, body); err != nil {
		return err
	}
	return untilReady(c)
}

// talkPostgres sends a simple query and reads to the end of its answer.
func talkPostgres(c *bufio.ReadWriter, text string) error {
	if err := sendPostgres(c, 'Q', []byte(text+"\x00")); err != nil {
		return err
	}
	return untilReady(c)
}

func sendPostgres(c *bufio.ReadWriter, kind byte, body []byte) error {
	var message []byte
	if kind != 0 {
		message = append(message, kind)
	}
	message = binary.BigEndian.AppendUint32(message, uint32(len(body)+4))
	return send(c, append(message, body...))
}

// untilReady reads messages up to ReadyForQuery. An ErrorResponse is an error.
func untilReady(c *bufio.ReadWriter) error {
	var failed error
	for {
		head, err := receive(c, 5)
		if err != nil {
			return errors.Join(failed, err)
		}
		length := int(binary.BigEndian.Uint32(head[1:])) - 4
		const most = 1 << 20
		if length < 0 || length > most {
			return fmt.Errorf("postgres: a message of %d bytes", length)
		}
		body, err := receive(c, length)
		if err != nil {
			return errors.Join(failed, err)
		}
		switch {
		case head[0] == 'Z':
			return failed
		case head[0] == 'E':
			failed = fmt.Errorf("postgres: %.200q", body)
		case head[0] == 'R' && binary.BigEndian.Uint32(body) != 0:
			return errors.New("postgres asks for a password: use trust in pg_hba.conf")
		}
	}
}

// Capabilities of a MySQL client.
const (
	mysqlProtocol41       = 1 << 9
	mysqlSecureConnection = 1 << 15
)

// The first byte of an answer of MySQL.
const (
	mysqlOK    = 0x00
	mysqlEnd   = 0xfe // of columns or rows, in at most mysqlEndBytes
	mysqlError = 0xff
)

const mysqlEndBytes = 5

// greetMySQL starts a session of root without a password. The server runs with
// --skip-grant-tables.
func greetMySQL(c *bufio.ReadWriter) error {
	if _, err := readMySQL(c); err != nil { // what the server is
		return err
	}
	const most, utf8 = 1 << 24, 33
	body := binary.LittleEndian.AppendUint32(nil, mysqlProtocol41|mysqlSecureConnection)
	body = binary.LittleEndian.AppendUint32(body, most)
	body = append(append(body, utf8), make([]byte, 23)...)
	body = append(body, "root\x00\x00"...) // a password of 0 bytes
	if err := sendMySQL(c, 1, body); err != nil {
		return err
	}
	answer, err := readMySQL(c)
	if err == nil && answer[0] != mysqlOK {
		err = fmt.Errorf("mysql asks for a password (%.60q): start it with --skip-grant-tables", answer)
	}
	return err
}

// talkMySQL sends a query and reads its columns and rows.
func talkMySQL(c *bufio.ReadWriter, text string) error {
	const query = 3
	if err := sendMySQL(c, 0, append([]byte{query}, text...)); err != nil {
		return err
	}
	answer, err := readMySQL(c)
	if err != nil || answer[0] == mysqlOK {
		return err
	}
	for ends := 0; ends < 2; { // of the columns, of the rows
		if answer, err = readMySQL(c); err != nil {
			return err
		}
		if answer[0] == mysqlEnd && len(answer) <= mysqlEndBytes {
			ends++
		}
	}
	return nil
}

func sendMySQL(c *bufio.ReadWriter, number byte, body []byte) error {
	head := []byte{byte(len(body)), byte(len(body) >> 8), byte(len(body) >> 16), number}
	return send(c, append(head, body...))
}

// readMySQL reads a packet of at least one byte. What the server calls an error is one.
func readMySQL(c *bufio.ReadWriter) ([]byte, error) {
	head, err := receive(c, 4)
	if err != nil {
		return nil, err
	}
	length := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	const most = 1 << 20
	if length == 0 || length > most {
		return nil, fmt.Errorf("mysql: a packet of %d bytes", length)
	}
	body, err := receive(c, length)
	if err == nil && body[0] == mysqlError {
		err = fmt.Errorf("mysql: %.200q", body[1:])
	}
	return body, err
}

// Packets of MQTT 3.1.1: type and flags.
const (
	mqttConnect    = 0x10
	mqttConnected  = 0x20
	mqttPublish    = 0x32 // quality of Service 1: it is acknowledged
	mqttPublishAck = 0x40
)

// greetMQTT begins a clean session; the server makes up the client's id.
func greetMQTT(c *bufio.ReadWriter) error {
	answer, err := sendMQTT(c, mqttConnect, "\x00\x04MQTT\x04\x02\x00\x00\x00\x00")
	if err == nil && (answer.kind != mqttConnected || answer.body != "\x00\x00") {
		err = fmt.Errorf("mqtt: connection refused: %x %x", answer.kind, answer.body)
	}
	return err
}

// talkMQTT publishes a message and waits until the server has it.
func talkMQTT(c *bufio.ReadWriter, text string) error {
	const topic, id = "\x00\x05truth", "\x00\x01"
	answer, err := sendMQTT(c, mqttPublish, topic+id+text)
	if err == nil && (answer.kind != mqttPublishAck || answer.body != id) {
		err = fmt.Errorf("mqtt: not acknowledged: %x %x", answer.kind, answer.body)
	}
	return err
}

// mqttPacket is one with a short body.
type mqttPacket struct {
	kind byte
	body string
}

// longestMQTT is the longest body whose length is one byte.
const longestMQTT = 127

// sendMQTT sends a packet and reads the next.
func sendMQTT(c *bufio.ReadWriter, kind byte, body string) (p mqttPacket, err error) {
	if len(body) > longestMQTT {
		return p, fmt.Errorf("mqtt: a body of %d bytes: at most %d", len(body), longestMQTT)
	}
	if err := send(c, append([]byte{kind, byte(len(body))}, body...)); err != nil {
		return p, err
	}
	head, err := receive(c, 2)
	if err != nil {
		return p, err
	}
	if head[1] > longestMQTT {
		return p, errors.New("mqtt: a long answer")
	}
	answer, err := receive(c, int(head[1]))
	return mqttPacket{head[0], string(answer)}, err
}

// dnsHeader is the length of a message's header (RFC 1035).
const dnsHeader = 12

// drawn is the number of a question: a resolver draws each anew, so that nobody can guess it (RFC 5452).
func drawn() uint16 { return uint16(rand.Uint32()) }

// dnsQuestion asks for the address of a name.
func dnsQuestion(number uint16, name string) []byte {
	const recurse, address, internet = 0x0100, 1, 1
	ask := append(binary.BigEndian.AppendUint16(nil, number), recurse>>8, 0, 0, 1, 0, 0, 0, 0, 0, 0) // one question
	for label := range strings.SplitSeq(name, ".") {
		ask = append(append(ask, byte(len(label))), label...)
	}
	return append(ask, 0, 0, address, 0, internet)
}

// dnsFound tells by an answer's first bytes whether the name has an address.
func dnsFound(number uint16, name string, head []byte) error {
	if len(head) < dnsHeader {
		return fmt.Errorf("dns: an answer of %d bytes", len(head))
	}
	if of := binary.BigEndian.Uint16(head); of != number {
		return fmt.Errorf("dns: %s: an answer to question %d, not to %d", name, of, number)
	}
	if code, answers := head[3]&15, binary.BigEndian.Uint16(head[6:]); code != 0 || answers == 0 {
		return fmt.Errorf("dns: %s: code %d, %d answers", name, code, answers)
	}
	return nil
}

// dnsOverTCP asks for the address of a name, each time by another number.
func dnsOverTCP(draw func() uint16) conversation {
	return func(c *bufio.ReadWriter, text string) error {
		number := draw()
		ask := dnsQuestion(number, text)
		if err := send(c, append(binary.BigEndian.AppendUint16(nil, uint16(len(ask))), ask...)); err != nil {
			return err
		}
		length, err := receive(c, 2)
		if err != nil {
			return err
		}
		answer, err := receive(c, int(binary.BigEndian.Uint16(length)))
		if err != nil {
			return err
		}
		return dnsFound(number, text, answer)
	}
}

// dnsOverUDP asks as dnsOverTCP does: a datagram each way.
func dnsOverUDP(draw func() uint16) conversation {
	return func(c *bufio.ReadWriter, text string) error {
		number := draw()
		if err := send(c, dnsQuestion(number, text)); err != nil {
			return err
		}
		const longest = 512 // without EDNS
		var answer [longest]byte
		n, err := c.Read(answer[:])
		if err != nil {
			return err
		}
		return dnsFound(number, text, answer[:n])
	}
}
