package services

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Protocols whose messages are lines.

// sendLine sends one line and returns the first line of the answer.
func sendLine(c *bufio.ReadWriter, line string) (string, error) {
	if err := send(c, []byte(line+"\r\n")); err != nil {
		return "", err
	}
	return answerLine(c)
}

func answerLine(c *bufio.ReadWriter) (string, error) {
	line, err := c.ReadString('\n')
	return strings.TrimRight(line, "\r\n"), err
}

// skip reads a value of n bytes and the end of its line.
func skip(c *bufio.ReadWriter, n string) error {
	length, err := strconv.Atoi(n)
	if err != nil {
		return fmt.Errorf("length %.20q: %w", n, err)
	}
	_, err = c.Discard(length + 2)
	return err
}

// talkRedis sends an inline command (RESP2) and reads a status, a number or a string.
func talkRedis(c *bufio.ReadWriter, text string) error {
	line, err := sendLine(c, text)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(line, "+"), strings.HasPrefix(line, ":"), line == "$-1":
		return nil
	case strings.HasPrefix(line, "$"):
		return skip(c, line[1:])
	}
	return fmt.Errorf("redis: %.100q", line)
}

// talkMemcached sends a get (memcached's protocol.txt).
func talkMemcached(c *bufio.ReadWriter, text string) error {
	line, err := sendLine(c, text)
	for err == nil && strings.HasPrefix(line, "VALUE ") {
		fields := strings.Fields(line)
		if err = skip(c, fields[len(fields)-1]); err == nil {
			line, err = answerLine(c)
		}
	}
	if err == nil && line != "END" && line != "STORED" {
		err = fmt.Errorf("memcached: %.100q", line)
	}
	return err
}

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
		line, err = sendLine(c, "PONG")
	}
	if err == nil && line != "PONG" {
		err = fmt.Errorf("nats: %.100q", line)
	}
	return err
}

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
		if err := send(c, []byte(text+"\n")); err != nil { // clamd takes a carriage return for a part of the file's name
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
