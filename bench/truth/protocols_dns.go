package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// dnsHeader is the length of a message's header (RFC 1035).
const dnsHeader = 12

// dnsQuestion asks for the address of a name.
func dnsQuestion(name string) []byte {
	const recurse, address, internet = 0x0100, 1, 1
	ask := []byte{0, 7, recurse >> 8, 0, 0, 1, 0, 0, 0, 0, 0, 0} // number 7, one question
	for label := range strings.SplitSeq(name, ".") {
		ask = append(append(ask, byte(len(label))), label...)
	}
	return append(ask, 0, 0, address, 0, internet)
}

// dnsFound tells by an answer's first bytes whether the name has an address.
func dnsFound(name string, head []byte) error {
	if len(head) < dnsHeader {
		return fmt.Errorf("dns: an answer of %d bytes", len(head))
	}
	if code, answers := head[3]&15, binary.BigEndian.Uint16(head[6:]); code != 0 || answers == 0 {
		return fmt.Errorf("dns: %s: code %d, %d answers", name, code, answers)
	}
	return nil
}

// talkDNS asks for the address of a name, over TCP.
func talkDNS(c *bufio.ReadWriter, text string) error {
	ask := dnsQuestion(text)
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(ask))), ask...)); err != nil {
		return err
	}
	if err := c.Flush(); err != nil {
		return err
	}
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return err
	}
	answer := make([]byte, binary.BigEndian.Uint16(length[:]))
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	return dnsFound(text, answer)
}

// talkDatagramDNS asks for the address of a name, over UDP: a datagram each way.
func talkDatagramDNS(c *bufio.ReadWriter, text string) error {
	if _, err := c.Write(dnsQuestion(text)); err != nil {
		return err
	}
	if err := c.Flush(); err != nil {
		return err
	}
	const longest = 512 // without EDNS
	var answer [longest]byte
	n, err := c.Read(answer[:])
	if err != nil {
		return err
	}
	return dnsFound(text, answer[:n])
}
