// Package sparinglog keeps a program that runs for months from writing the same warning thousands of times.
package sparinglog

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"
)

const (
	// repeatAfter is how long the same warning or error is not written again.
	repeatAfter = time.Minute
	// maxRemembered bounds how many different lines are remembered.
	maxRemembered = 1024
	// maxKey bounds what is compared of a line.
	maxKey = 1024
)

// OncePerMinute writes the same warning or error at most once a minute, and then says how often it came. Lines are the
// same if they differ only in numbers; a number in a name, such as that of a cgroup, counts. Lines of a lower level pass.
func OncePerMinute(to slog.Handler) slog.Handler {
	return &handler{to: to, said: &remembered{lines: map[string]*line{}}}
}

type handler struct {
	to slog.Handler
	// with is the text of the attributes that With added.
	with string
	said *remembered
}

// remembered is shared by the handlers that With made of one.
type remembered struct {
	mu    sync.Mutex
	lines map[string]*line
}

type line struct {
	at     time.Time
	unsaid int // since then
}

// Enabled implements slog.Handler.
func (s *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return s.to.Enabled(ctx, level)
}

// WithGroup implements slog.Handler.
func (s *handler) WithGroup(name string) slog.Handler {
	return &handler{s.to.WithGroup(name), s.with + " " + name + ".", s.said}
}

// WithAttrs implements slog.Handler.
func (s *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := s.with
	for _, a := range attrs {
		with += " " + alike(a)
	}
	return &handler{s.to.WithAttrs(attrs), with, s.said}
}

// Handle implements slog.Handler.
func (s *handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return s.to.Handle(ctx, r)
	}
	key := r.Message + s.with
	r.Attrs(func(a slog.Attr) bool {
		key += " " + alike(a)
		return len(key) < maxKey
	})
	unsaid, write := s.said.take(key[:min(len(key), maxKey)], r.Time)
	if !write {
		return nil
	}
	if unsaid > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("times_more_in_the_last_minute", unsaid))
	}
	return s.to.Handle(ctx, r)
}

// take tells whether a line is written now, and how often it was not since it was last.
func (m *remembered) take(key string, now time.Time) (unsaid int, write bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.lines[key]; l != nil && now.Sub(l.at) < repeatAfter {
		l.unsaid++
		return 0, false
	} else if l != nil {
		unsaid = l.unsaid
	}
	if len(m.lines) >= maxRemembered {
		for k, l := range m.lines {
			if now.Sub(l.at) >= repeatAfter {
				delete(m.lines, k)
			}
		}
	}
	if _, known := m.lines[key]; !known && len(m.lines) >= maxRemembered {
		return 0, false // more than maxRemembered different ones in a minute
	}
	m.lines[key] = &line{at: now}
	return unsaid, true
}

// alike is an attribute without its numbers, unless it is a name.
func alike(a slog.Attr) string {
	if a.Value.Kind() == slog.KindString && a.Key != "why" && a.Key != "note" {
		return a.String()
	}
	return folded(a.String())
}

// folded replaces each number in a line by one sign.
func folded(text string) string {
	var b strings.Builder
	digits := false
	for _, r := range text[:min(len(text), maxKey)] {
		if is := unicode.IsDigit(r); is && digits {
			continue
		} else if digits = is; is {
			r = '#'
		}
		b.WriteRune(r)
	}
	return b.String()
}
