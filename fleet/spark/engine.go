package spark

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/unthrottle/unthrottle/fleet/engine"
)

//go:embed job.py
var jobText []byte

// Options say how Spark is run.
type Options struct {
	Master Master
	// Submit is the program spark-submit: see [Find].
	Submit string
	// Dir is a folder for the run, which the caller makes and removes.
	Dir string
	// MemoryMB bounds the memory of the driver, which with local[N] holds the rows.
	MemoryMB int
	// Progress is told of each step; nil: nothing is.
	Progress func(Step)
}

// Engine is one run of Spark.
type Engine struct {
	o Options
	// patience is how long Spark gets to end by itself when it is asked to.
	patience time.Duration
}

var _ engine.Engine = (*Engine)(nil)

// Open begins a run, and checks that there is Java.
func Open(o Options) (*Engine, error) {
	if err := needJava(os.Getenv); err != nil {
		return nil, err
	}
	return &Engine{o: o, patience: 10 * time.Second}, nil
}

// errPartlyRead is why a file is left out of which rows are missing.
var errPartlyRead = errors.New("Spark cannot read all of its rows: " +
	"it is damaged, or its columns are of types that Spark does not read")

// Prepare runs Spark: it makes the tables and answers all questions of a script.
func (e *Engine) Prepare(ctx context.Context, files []string, s engine.Script) (refused []engine.Refused, err error) {
	descriptions, errs := described(ctx, files)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var sound []int
	for no, err := range errs {
		if err != nil {
			refused = append(refused, engine.Refused{File: files[no], Err: err})
			continue
		}
		sound = append(sound, no)
	}
	out := filepath.Join(e.o.Dir, "answers")
	j := newJob(files, descriptions, sound, s, out)
	text, err := json.Marshal(j)
	if err != nil {
		return refused, err
	}
	if err := errors.Join(os.Mkdir(out, 0o700), os.WriteFile(filepath.Join(e.o.Dir, "job.py"), jobText, 0o600),
		os.WriteFile(filepath.Join(e.o.Dir, "job.json"), text, 0o600)); err != nil {
		return refused, err
	}
	if err := e.submit(ctx); err != nil {
		return refused, err
	}
	err = engine.Each(ctx, e, damaged, func(line struct{ FileNo int }) {
		refused = append(refused, engine.Refused{File: files[line.FileNo], Err: errPartlyRead})
	})
	return refused, err
}

// Ask reads the answer to a question.
func (e *Engine) Ask(_ context.Context, name string, line func(columns []string, scan func(...any) error) error) error {
	f, err := os.Open(filepath.Join(e.o.Dir, "answers", name))
	if err != nil {
		return fmt.Errorf("Spark's answer: %w", err)
	}
	defer f.Close()
	rows := json.NewDecoder(bufio.NewReader(f))
	var columns []string
	if err := rows.Decode(&columns); err != nil {
		return fmt.Errorf("Spark's answer to %s: %w", name, err)
	}
	for rows.More() {
		var values []json.RawMessage
		if err := rows.Decode(&values); err != nil {
			return fmt.Errorf("Spark's answer to %s: %w", name, err)
		}
		if err := line(columns, func(to ...any) error { return scan(values, to) }); err != nil {
			return fmt.Errorf("Spark's answer to %s: %w", name, err)
		}
	}
	return nil
}

// scan sets what to points to.
func scan(values []json.RawMessage, to []any) error {
	if len(values) != len(to) {
		return fmt.Errorf("%d columns, not %d", len(values), len(to))
	}
	for i, v := range values {
		if kind := reflect.TypeOf(to[i]).Elem().Kind(); bytes.Equal(v, []byte("null")) && kind != reflect.Pointer &&
			kind != reflect.Interface {
			return fmt.Errorf("column %d is null", i)
		}
		if err := json.Unmarshal(v, to[i]); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
	}
	return nil
}
