package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"strings"
	"time"
)

// handshakes gets pages, each over a connection of its own: no session is resumed, so that
// the server signs each time. It trusts any certificate.
func handshakes(addr string) func(ctx context.Context, text string) error {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	return func(ctx context.Context, text string) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		c, err := dialer.DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience)) // fails on a closed socket only
		if _, err := fmt.Fprintf(c, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", text, addr); err != nil {
			return err
		}
		answer, err := io.ReadAll(io.LimitReader(c, 1<<20))
		if err == nil && !strings.HasPrefix(string(answer), "HTTP/1.1 200") && !strings.HasPrefix(string(answer), "HTTP/1.0 200") {
			err = fmt.Errorf("tls: %.60q", answer)
		}
		return err
	}
}
