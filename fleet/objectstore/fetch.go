package objectstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/unthrottle/unthrottle/internal/text"
)

const (
	// atOnce is how many files are fetched at once: most of their time goes by with waiting.
	atOnce = 16
	// attempts are how often a transfer that is cut off begins.
	attempts = 3
)

// Into says where files go.
type Into struct {
	// Dir is an empty folder. Room is how many bytes may come into it.
	Dir  string
	Room int64
	// Progress is told how many files have come of all; nil: nothing is. It is called from one goroutine at once.
	Progress func(done, total int)
}

// Fetched is what came.
type Fetched struct {
	// Files are those in the folder, in the order of their keys. Names are what they are called in the store.
	Files []string
	Names map[string]string
	Left  []Left
}

// Left is an object that was left out.
type Left struct{ Name, Why string }

// NoRoom is the error where there is no room for the files.
type NoRoom struct {
	Place            Place
	Files            int
	NeedBytes, Bytes int64
}

func (e *NoRoom) Error() string {
	return fmt.Sprintf("%s: %s of %d MiB, and there is room for %d MiB: TMPDIR names another place, --disk gives more, "+
		"a longer prefix such as that of a day takes fewer",
		text.Sanitize(e.Place.String(), 0), text.Count(e.Files, "file"), (e.NeedBytes+1<<20-1)>>20, e.Bytes>>20)
}

// Fetch brings objects into a folder.
func (s *Store) Fetch(parent context.Context, objects []Object, into Into) (f Fetched, err error) {
	var need int64
	for _, o := range objects {
		need += min(o.Bytes, math.MaxInt64-need) // a size is what a stranger says
	}
	if need > into.Room {
		return f, &NoRoom{s.place, len(objects), need, into.Room}
	}
	var used atomic.Int64
	take := func(n int) error {
		if used.Add(int64(n)) > into.Room {
			return fmt.Errorf("%s: its files have grown since they were listed, beyond the room of %d MiB: TMPDIR names another "+
				"place, --disk gives more", text.Sanitize(s.place.String(), 0), into.Room>>20)
		}
		return nil
	}
	names, whys := make([]string, len(objects)), make([]error, len(objects))
	var mu sync.Mutex
	done := 0
	workers, ctx := errgroup.WithContext(parent)
	workers.SetLimit(atOnce)
	for i := 0; i < len(objects) && ctx.Err() == nil; i++ {
		workers.Go(func() (err error) {
			names[i] = filepath.Join(into.Dir, fmt.Sprintf("%07d.parquet", i))
			if whys[i], err = s.fetchOne(ctx, objects[i].Key, names[i], take); err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if done++; into.Progress != nil {
				into.Progress(done, len(objects))
			}
			return nil
		})
	}
	if err := cmp.Or(workers.Wait(), context.Cause(parent)); err != nil {
		return f, err
	}
	f.Names = make(map[string]string, len(objects))
	for i, o := range objects {
		if answer := response(whys[i]); whys[i] != nil {
			if len(f.Files) == 0 && i == len(objects)-1 && slices.Contains(refusals, answer.Code) { // all are refused
				return f, s.explained(s.place.name(o.Key), whys[i])
			}
			why := "it is gone since it was listed"
			if answer.Code != gone {
				why = "the store refuses it: " + text.Sanitize(answer.Code+": "+answer.Message, maxReason)
			}
			f.Left = append(f.Left, Left{s.place.name(o.Key), why})
			continue
		}
		f.Files = append(f.Files, names[i])
		f.Names[names[i]] = s.place.name(o.Key)
	}
	return f, nil
}

// local is an error of this machine or of its room: to begin anew does not help.
type local struct{ error }

// gone is the code of an object that is not there.
const gone = "NoSuchKey"

// fetchOne fetches one object. why is the store's answer for which it is left out.
func (s *Store) fetchOne(ctx context.Context, key, to string, take func(n int) error) (why, err error) {
	alone := func(answer minio.ErrorResponse) bool {
		return slices.Contains([]string{gone, "AccessDenied", "InvalidObjectState"}, answer.Code) // the last is of an archive
	}
	why, err = s.attempted(ctx, key, "came", alone, func(ctx context.Context,
		alive func()) error {
		return s.transfer(ctx, alive, key, to, take)
	})
	if own := new(local); errors.As(err, own) {
		err = own.error
	}
	return why, err
}

// attempted does a transfer of an object, and again where it is cut off or stands still. once tells alive of each part
// that came or went, as moves says. why is an answer of the store that is about this object alone; an error that is
// local comes back as it is.
func (s *Store) attempted(ctx context.Context, key, moves string, alone func(minio.ErrorResponse) bool,
	once func(ctx context.Context, alive func()) error) (why, err error) {
	for attempt := 1; ; attempt++ {
		err = s.watch(ctx, moves, once)
		switch answer := response(err); {
		case err == nil:
			return nil, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, new(local)):
			return nil, err
		case alone(answer):
			return err, nil
		case answer.StatusCode != 0 || attempt == attempts: // the client has repeated what may be repeated
			return nil, s.explained(s.place.name(key), err)
		}
	}
}

// watch ends a transfer that stands still.
func (s *Store) watch(ctx context.Context, moves string, once func(ctx context.Context, alive func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(s.patience, func() {
		cancel(fmt.Errorf("nothing %s for %s", moves,
			text.Duration(s.patience)))
	})
	defer stalled.Stop()
	return once(ctx, func() { stalled.Reset(s.patience) })
}

// transfer writes an object to a file, whole or not at all.
func (s *Store) transfer(ctx context.Context, alive func(), key, to string, take func(n int) error) (err error) {
	body, info, _, err := s.client.GetObject(ctx, s.place.Bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return cause(ctx, err)
	}
	defer body.Close()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return local{err}
	}
	n, err := io.Copy(&sink{f, take}, &watched{body, alive})
	if err == nil && info.Size >= 0 && n != info.Size {
		err = io.ErrUnexpectedEOF
	}
	if closed := f.Close(); err == nil && closed != nil {
		err = local{fmt.Errorf("%w: TMPDIR names another place", closed)}
	}
	if err != nil {
		_ = take(int(-n))
		return errors.Join(cause(ctx, err), os.Remove(to))
	}
	return nil
}

// cause is why a transfer ended: an end by this program hides behind the context's.
func cause(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// watched tells of each part that comes.
type watched struct {
	io.Reader
	came func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.came()
	}
	return n, err
}

// sink is a file that takes no more than there is room for.
type sink struct {
	f    *os.File
	take func(n int) error
}

func (s *sink) Write(p []byte) (int, error) {
	if err := s.take(len(p)); err != nil {
		return 0, local{err}
	}
	n, err := s.f.Write(p)
	if err != nil {
		err = local{fmt.Errorf("%w: TMPDIR names another place", err)}
	}
	return n, err
}
