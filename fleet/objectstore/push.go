package objectstore

import (
	"cmp"
	"context"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/unthrottle/unthrottle/internal/text"
)

// pushedAtOnce is how many files are pushed at once: a host has few, and other work.
const pushedAtOnce = 4

// Push brings files of a folder into a place in a store, again and again: what is there already does not go a second
// time.
type Push struct {
	Store *Store
	// Dir is the folder. Its files *.parquet have the same names below the place.
	Dir string
	// known is what was in the store when it was last looked at, by name.
	known map[string]version
}

// version tells whether a file has changed.
type version struct {
	bytes  int64
	change time.Time
}

// Pushed is what became of one call.
type Pushed struct {
	// Files is how many the folder has, Sent how many of them were new or had changed, Bytes what those have.
	Files, Sent int
	Bytes       int64
	// Failed are those that could not be sent, by their names in the folder.
	Failed []Left
}

// Do pushes what is new. The error is about the store or the folder as a whole; what is wrong with one file is in
// Failed.
func (p *Push) Do(parent context.Context) (done Pushed, err error) {
	names, failed, err := filesIn(p.Dir)
	if err != nil {
		return done, err
	}
	done.Files, done.Failed = len(names), failed
	if p.known == nil {
		p.known = map[string]version{}
	}
	var mu sync.Mutex
	workers, ctx := errgroup.WithContext(parent)
	workers.SetLimit(pushedAtOnce)
	for i := 0; i < len(names) && ctx.Err() == nil; i++ {
		workers.Go(func() error {
			sent, why, err := p.push(ctx, names[i], &mu)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case why != "":
				done.Failed = append(done.Failed, Left{names[i], why})
			case sent != nil:
				done.Sent, done.Bytes = done.Sent+1, done.Bytes+sent.bytes
			}
			return nil
		})
	}
	err = cmp.Or(workers.Wait(), context.Cause(parent))
	slices.SortFunc(done.Failed, func(a, b Left) int { return strings.Compare(a.Name, b.Name) })
	if err != nil {
		return done, err
	}
	for name := range p.known {
		if _, ok := slices.BinarySearch(names, name); !ok {
			delete(p.known, name) // removed here; in the store it stays
		}
	}
	return done, nil
}

// filesIn are the names of the files of rows in a folder, relative to it and in order. A part of it that cannot be read
// comes back.
func filesIn(dir string) (names []string, failed []Left, err error) {
	err = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		relative, relErr := filepath.Rel(dir, name)
		switch {
		case err != nil && name == dir:
			return err
		case err != nil || relErr != nil:
			failed = append(failed, Left{relative, errors.Join(err, relErr).Error()})
			if e != nil && e.IsDir() {
				return fs.SkipDir
			}
		case strings.HasSuffix(name, ".parquet") && e.Type().IsRegular():
			names = append(names, relative)
		}
		return nil
	})
	slices.Sort(names)
	return names, failed, err
}

// push pushes one file, if it is not there. sent is what went; why is for what reason it did not go, alone.
func (p *Push) push(ctx context.Context, name string, mu *sync.Mutex) (sent *version, why string, err error) {
	f, err := os.Open(filepath.Join(p.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil // removed since
	}
	if err != nil {
		return nil, err.Error(), nil
	}
	defer f.Close()
	// The file is replaced and never written to: what is open stays whole.
	info, err := f.Stat()
	if err != nil {
		return nil, err.Error(), nil
	}
	is := version{info.Size(), info.ModTime()}
	if is.bytes == 0 {
		return nil, "it is empty", nil
	}
	mu.Lock()
	known := p.known[name] == is
	mu.Unlock()
	if known {
		return nil, "", nil
	}
	sum := md5.New()
	if _, err := io.Copy(sum, f); err != nil {
		return nil, err.Error(), nil
	}
	key := p.Store.place.Below + filepath.ToSlash(name)
	there := p.Store.has(ctx, key, is.bytes, hex.EncodeToString(sum.Sum(nil)))
	if !there {
		why, err = p.Store.put(ctx, key, f, is.bytes, sum.Sum(nil))
		if why != "" || err != nil {
			return nil, why, err
		}
		sent = &is
	}
	mu.Lock()
	p.known[name] = is
	mu.Unlock()
	return sent, "", nil
}

// sumKey is the key of an object's own metadata that has the MD5 sum of its content, as 32 digits.
const sumKey = "Unthrottle-Md5"

// has reports whether the store has a file of so many bytes and this sum. Where it does not say, such as to those who may only
// write, it has it not. The entity's tag is the sum, unless the store encrypts with keys of its own: then the metadata tell it.
func (s *Store) has(ctx context.Context, key string, bytes int64, sum string) bool {
	o, err := s.client.StatObject(ctx, s.place.Bucket, key, minio.StatObjectOptions{})
	return err == nil && o.Size == bytes && (strings.Trim(o.ETag, `"`) == sum || o.UserMetadata[sumKey] == sum)
}

// put writes an object, whole or not at all. why is the reason for which it alone does not go.
func (s *Store) put(ctx context.Context, key string, f *os.File, bytes int64, sum []byte) (why string, err error) {
	alone := func(answer minio.ErrorResponse) bool {
		return answer.StatusCode == http.StatusBadRequest && slices.Contains([]string{"KeyTooLongError", "EntityTooLarge",
			"InvalidArgument"}, answer.Code)
	}
	refused, err := s.attempted(ctx, key, "went", alone, func(ctx context.Context, alive func()) error {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return local{err}
		}
		_, err := s.client.PutObject(ctx, s.place.Bucket, key, &watched{f, alive}, bytes,
			base64.StdEncoding.EncodeToString(sum), "", minio.PutObjectOptions{ContentType: "application/vnd.apache.parquet",
				DisableMultipart: true, UserMetadata: map[string]string{sumKey: hex.EncodeToString(sum)}})
		return cause(ctx, err)
	})
	switch own := new(local); {
	case errors.As(err, own):
		return own.Error(), nil
	case refused != nil:
		answer := response(refused)
		why = "the store refuses it: " + text.Sanitize(answer.Code+": "+answer.Message, maxReason)
	}
	return why, err
}
