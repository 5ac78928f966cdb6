package sparinglog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestOncePerMinute(t *testing.T) {
	var out bytes.Buffer
	handler := OncePerMinute(slog.NewTextHandler(&out, nil))
	begin := time.Unix(1000, 0)
	say := func(after time.Duration, level slog.Level, message string, attrs ...any) string {
		out.Reset()
		record := slog.NewRecord(begin.Add(after), level, message, 0)
		record.Add(attrs...)
		if err := handler.Handle(context.Background(), record); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for i := range 100 {
		said := say(time.Duration(i)*time.Second/2, slog.LevelError, "the journal cannot be read", "error",
			fmt.Errorf("process %d: permission denied", i))
		if (said != "") != (i == 0) {
			t.Errorf("line %d: %q", i, said)
		}
	}
	if said := say(time.Minute, slog.LevelError, "the journal cannot be read", "error",
		errors.New("process 100: permission denied")); !strings.Contains(said, "times_more_in_the_last_minute=99") {
		t.Errorf("after a minute: %q", said)
	}
	if say(time.Minute, slog.LevelError, "the journal cannot be read", "error", errors.New("no such file")) == "" {
		t.Error("another cause is another line")
	}
	for range 2 {
		if say(time.Minute, slog.LevelInfo, "recorded") == "" {
			t.Error("what is no complaint passes")
		}
	}
	handlerOf := func(cgroup string) slog.Handler { return handler.WithAttrs([]slog.Attr{slog.String("cgroup", cgroup)}) }
	for _, path := range []string{"/pod1", "/pod2"} {
		out.Reset()
		_ = handlerOf(path).Handle(context.Background(), slog.NewRecord(begin, slog.LevelWarn, "not fixed", 0))
		if !strings.Contains(out.String(), path) {
			t.Errorf("%s: %q", path, out.String())
		}
	}
}

// A flood of lines that all differ is bounded too.
func TestOncePerMinuteIsBounded(t *testing.T) {
	m := &remembered{lines: map[string]*line{}}
	begin, written := time.Unix(1000, 0), 0
	for i := range 3 * maxRemembered {
		if _, ok := m.take(fmt.Sprint("line ", i), begin); ok {
			written++
		}
	}
	if written != maxRemembered || len(m.lines) != maxRemembered {
		t.Errorf("%d written, %d remembered", written, len(m.lines))
	}
	if _, ok := m.take("later", begin.Add(repeatAfter)); !ok || len(m.lines) != 1 {
		t.Errorf("a minute later: %v, %d remembered", ok, len(m.lines))
	}
}
