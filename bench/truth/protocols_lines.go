package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// dialog is what is said on a new connection for each request.
type dialog struct {
	// greets: the server speaks first.
	greets bool
	// begins is what the line that ends the answer begins with, and ends what it ends with.
	begins, ends string
}

// dialogs are the protocols of short connections.
func dialogs() map[string]dialog {
	return map[string]dialog{
		protocolSSH:   {greets: true, begins: "SSH-2.0"},
		protocolIMAP:  {greets: true, begins: "a OK"},
		protocolClamd: {begins: "PONG"}, protocolClamdScan: {ends: ": OK"},
		protocolSpamc: {begins: "SPAMD/1.1 0 EX_OK"},
	}
}

// hold connects to a server for each request.
func (d dialog) hold(addr string) func(ctx context.Context, text string) error {
	return func(ctx context.Context, text string) error {
		socket, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		defer socket.Close()
		_ = socket.SetDeadline(time.Now().Add(patience)) // fails on a closed socket only
		return d.talk(bufio.NewReadWriter(bufio.NewReader(socket), bufio.NewWriter(socket)), text)
	}
}

// talk hears the greeting, sends the text as a line, if there is one, and reads up to the line that ends the answer.
func (d dialog) talk(c *bufio.ReadWriter, text string) (err error) {
	line := ""
	if d.greets {
		if line, err = answerLine(c); err != nil {
			return err
		}
	}
	if text != "" {
		_, err = c.WriteString(text + "\n") // clamd takes a carriage return for a part of the file's name
		if err = errors.Join(err, c.Flush()); err != nil {
			return err
		}
		if line, err = answerLine(c); err != nil {
			return err
		}
	}
	const most = 100
	for n := 0; n < most && strings.HasPrefix(line, "* "); n++ { // IMAP's lines before the last
		if line, err = answerLine(c); err != nil {
			return err
		}
	}
	if strings.HasPrefix(line, d.begins) && strings.HasSuffix(line, d.ends) {
		return nil
	}
	return fmt.Errorf("%.30q: answer %.100q", text, line)
}

// greetNATS begins a session without acknowledgements.
func greetNATS(c *bufio.ReadWriter) error {
	line, err := answerLine(c)
	if err == nil && !strings.HasPrefix(line, "INFO ") {
		err = fmt.Errorf("nats: %.100q", line)
	}
	if err != nil {
		return err
	}
	_, err = c.WriteString("CONNECT {\"verbose\":false,\"pedantic\":false}\r\n")
	return err
}

// talkNATS publishes a message and waits for the server's pong, which comes after it was handled.
func talkNATS(c *bufio.ReadWriter, text string) error {
	line, err := sendLine(c, fmt.Sprintf("PUB truth %d\r\n%s\r\nPING", len(text), text))
	for err == nil && line == "PING" { // the server asks too, now and then
		if _, err = c.WriteString("PONG\r\n"); err == nil {
			err = c.Flush()
		}
		if err == nil {
			line, err = answerLine(c)
		}
	}
	if err == nil && line != "PONG" {
		err = fmt.Errorf("nats: %.100q", line)
	}
	return err
}
