package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

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
	if _, err := c.Write(append(head, body...)); err != nil {
		return err
	}
	return c.Flush()
}

// readMySQL reads a packet of at least one byte. What the server calls an error is one.
func readMySQL(c *bufio.ReadWriter) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return nil, err
	}
	length := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	const most = 1 << 20
	if length == 0 || length > most {
		return nil, fmt.Errorf("mysql: a packet of %d bytes", length)
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(c, body); err != nil {
		return nil, err
	}
	if body[0] == mysqlError {
		return nil, fmt.Errorf("mysql: %.200q", body[1:])
	}
	return body, nil
}
