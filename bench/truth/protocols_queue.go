package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
)

// talkBeanstalk puts a job and deletes it (beanstalkd's protocol.txt). text is the job.
func talkBeanstalk(c *bufio.ReadWriter, text string) error {
	line, err := sendLine(c, fmt.Sprintf("put 0 0 60 %d\r\n%s", len(text), text))
	id, ok := strings.CutPrefix(line, "INSERTED ")
	if err == nil && ok {
		line, err = sendLine(c, "delete "+id)
	}
	if err == nil && line != "DELETED" {
		err = fmt.Errorf("beanstalkd: %.100q", line)
	}
	return err
}

// Packets of MQTT 3.1.1: type and flags.
const (
	mqttConnect    = 0x10
	mqttConnected  = 0x20
	mqttPublish    = 0x32 // quality of service 1: it is acknowledged
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
	if _, err := c.WriteString(string([]byte{kind, byte(len(body))}) + body); err != nil {
		return p, err
	}
	if err := c.Flush(); err != nil {
		return p, err
	}
	var head [2]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return p, err
	}
	if head[1] > longestMQTT {
		return p, errors.New("mqtt: a long answer")
	}
	answer := make([]byte, head[1])
	_, err = io.ReadFull(c, answer)
	return mqttPacket{head[0], string(answer)}, err
}
