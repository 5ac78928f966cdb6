package policy

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/unthrottle/unthrottle/internal/text"
)

// Own is what the agent's process itself may take; the zero value bounds nothing. What it takes beyond it drops: first
// recordings, then period rows, then its rate. It never drops what keeps others safe, which is moving newcomers off
// exclusive CPUs, and restore.
type Own struct {
	// CPU is a share of one CPU on the mean, 0: no bound. The probe's programs run in other processes and are not in it.
	CPU float64
	// MemoryBytes is resident memory, 0: no bound.
	MemoryBytes int64
}

func (o *Own) read(n *yaml.Node) error {
	return mapping(n, map[string]func(*yaml.Node) error{"cpu": set(o.SetCPU), "memory": set(o.SetMemory)})
}

// set reads a value as a flag has it too.
func set(as func(string) error) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		var value string
		if err := words(n, &value); err != nil {
			return err
		}
		if err := as(value); err != nil {
			return wrong(n, "%s", err)
		}
		return nil
	}
}

// SetCPU reads a share of one CPU, such as 1%.
func (o *Own) SetCPU(share string) error {
	digits, percent := strings.CutSuffix(share, "%")
	value, err := text.ParseDecimal(digits)
	if err != nil || !percent || !(value > 0 && value <= 10_000) {
		return fmt.Errorf("%.40q is not a share of one CPU: write it with a percent sign, for example 1%%", share)
	}
	o.CPU = value / 100
	return nil
}

// SetMemory reads a number of MiB, such as 64MiB.
func (o *Own) SetMemory(size string) error { return mebibytes(size, &o.MemoryBytes) }

func mebibytes(size string, to *int64) error {
	digits, mebi := strings.CutSuffix(size, "MiB")
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || !mebi || n < 1 {
		return fmt.Errorf("%.40q is not a number of MiB: write it as, for example, 64MiB", size)
	}
	*to = n << 20
	return nil
}
