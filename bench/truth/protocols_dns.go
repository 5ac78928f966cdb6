package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// talkDNS asks for the address of a name, over TCP (RFC 1035).
func talkDNS(c *bufio.ReadWriter, text string) error {
	const recurse, address, internet = 0x0100, 1, 1
	ask := []byte{0, 7, recurse >> 8, 0, 0, 1, 0, 0, 0, 0, 0, 0} // number 7, one question
	for label := range strings.SplitSeq(text, ".") {
		ask = append(append(ask, byte(len(label))), label...)
	}
	ask = append(ask, 0, 0, address, 0, internet)
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(ask))), ask...)); err != nil {
		return err
	}
	if err := c.Flush(); err != nil {
		return err
	}
	var head [14]byte // the length and the header
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	rest := int(binary.BigEndian.Uint16(head[:])) - 12
	if rest < 0 {
		return fmt.Errorf("dns: an answer of %d bytes", rest+12)
	}
	if _, err := c.Discard(rest); err != nil {
		return err
	}
	if code, answers := head[5]&15, binary.BigEndian.Uint16(head[8:]); code != 0 || answers == 0 {
		return fmt.Errorf("dns: %s: code %d, %d answers", text, code, answers)
	}
	return nil
}
