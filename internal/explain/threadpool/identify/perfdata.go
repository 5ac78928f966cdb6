package identify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
)

const (
	maxPerfData     = 1 << 20 // bytes; by default a JVM has 32 KB
	maxPerfOptions  = 1024
	maxPerfVersion  = 40 // bytes
	perfDataMagic   = 0xcafec0c0
	perfDataMajor   = 2
	perfDataHead    = 32 // bytes before the entries
	perfDataEntry   = 20 // bytes of an entry before its name
	perfDataLong    = 'J'
	perfDataByte    = 'B'
	maxPerfCompiler = 1 << 16
)

// PerfData reads what a HotSpot JVM says of itself in its performance data, which it need not be asked for; nil: it has none
// (-XX:-UsePerfData, -XX:+PerfDisableSharedMem, a user without an account). It takes at most a second. What it says is
// a claim of the process.
func PerfData(pid int) (*threadpool.JVM, error) {
	return answered(pid, "its performance data", readPerfData)
}

// perfDataName is the end of the path of the file that a JVM has mapped: its user's name, and its number in its own PID
// namespace.
var perfDataName = regexp.MustCompile(`/(tmp/hsperfdata_[^/\s]+/([0-9]{1,10}))$`)

func readPerfData(pid int) (*threadpool.JVM, error) {
	d, err := openProcess(pid)
	if err != nil {
		return nil, err
	}
	defer d.close()
	maps, err := d.read("maps", maxMaps)
	if err != nil {
		return nil, nil // Look says what may not be read
	}
	s, err := d.status()
	if err != nil {
		return nil, err
	}
	name := perfDataFile(maps, s.inner)
	if name == "" {
		return nil, nil
	}
	text, err := d.ownFile(name, s.uid, maxPerfData)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // the JVM ends, or something cleaned its /tmp
	}
	if err != nil {
		return nil, err
	}
	return parsePerfData(text)
}

// perfDataFile finds the file among the mapped ones, below the process's root; "": it has none.
func perfDataFile(maps []byte, inner uint32) string {
	for line := range bytes.Lines(maps) {
		found := perfDataName.FindSubmatch(bytes.TrimSuffix(line, []byte{'\n'}))
		if found != nil && string(found[2]) == strconv.FormatUint(uint64(inner), 10) {
			return path.Join("/", string(found[1]))
		}
	}
	return ""
}

// parsePerfData reads the format of HotSpot's perfMemory.hpp and perfData.hpp, version 2.0. The JVM writes it at any moment, so
// only values that are written once are read.
func parsePerfData(data []byte) (*threadpool.JVM, error) {
	if len(data) < perfDataHead || binary.BigEndian.Uint32(data) != perfDataMagic {
		return nil, errors.New("it does not begin as HotSpot's do")
	}
	var order binary.ByteOrder = binary.BigEndian
	if data[4] == 1 {
		order = binary.LittleEndian
	}
	if data[5] != perfDataMajor || data[7] == 0 {
		return nil, fmt.Errorf("format %d.%d, complete %d: only format %d, complete, is known", data[5], data[6], data[7], perfDataMajor)
	}
	jvm := &threadpool.JVM{}
	at, entries := uint64(order.Uint32(data[24:])), order.Uint32(data[28:])
	for range entries {
		if at < perfDataHead || at+perfDataEntry > uint64(len(data)) {
			return nil, errors.New("an entry begins outside of it")
		}
		length := uint64(order.Uint32(data[at:]))
		if length < perfDataEntry || at+length > uint64(len(data)) {
			return nil, errors.New("an entry ends outside of it")
		}
		addPerfData(jvm, order, data[at:at+length])
		at += length
	}
	if n, told := threadpool.Known().ToldCPUs(nil, jvm.Options)["jvm"]; told {
		jvm.Processors = &n
	}
	return jvm, nil
}

// addPerfData adds an entry: its length, where its name begins, how many elements it has (0: it is none of several), their type,
// three bytes, where they begin; then these. It leaves out what is not sound.
func addPerfData(jvm *threadpool.JVM, order binary.ByteOrder, entry []byte) {
	nameAt, elements, valueAt := order.Uint32(entry[4:]), order.Uint32(entry[8:]), order.Uint32(entry[16:])
	size := uint64(len(entry))
	if uint64(nameAt) >= size || uint64(valueAt) >= size {
		return
	}
	name, _, whole := bytes.Cut(entry[nameAt:], []byte{0})
	if !whole {
		return
	}
	value := entry[valueAt:]
	switch kind := entry[12]; {
	case kind == perfDataByte && uint64(elements) <= uint64(len(value)):
		text, _, _ := strings.Cut(string(value[:elements]), "\x00")
		switch string(name) {
		case "java.property.java.version":
			jvm.Version = text[:min(len(text), maxPerfVersion)]
		case "java.rt.vmFlags", "java.rt.vmArgs": // of its file of flags, and of its command line with the variables
			words := strings.Fields(text)
			jvm.Options = append(jvm.Options, words[:min(len(words), maxPerfOptions)]...)
		default:
			if jvm.Collector == "" && perfDataCollector.Match(name) {
				jvm.Collector = collectorOf(text)
			}
		}
	case kind == perfDataLong && elements == 0 && len(value) >= 8 && string(name) == "sun.ci.threads":
		if n := order.Uint64(value); n > 0 && n <= maxPerfCompiler {
			jvm.CompilerThreads = int(n)
		}
	}
}

var perfDataCollector = regexp.MustCompile(`^sun\.gc\.collector\.[0-9]\.name$`)

// collectorOf is the collector by the name of one of its kinds of collection, as measured with JDK 17 and 25; "": another.
func collectorOf(name string) string {
	kind, _, _ := strings.Cut(name, " ")
	switch kind {
	case "G1", "Parallel", "Serial", "Shenandoah":
		return kind
	case "Z", "ZGC":
		return "Z"
	}
	return ""
}
