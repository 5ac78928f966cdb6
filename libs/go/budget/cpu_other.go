//go:build !linux

package budget

import (
	"errors"
	"time"
)

// processCPUTime is of Linux only, as limits are.
func processCPUTime() (time.Duration, error) { return 0, errors.ErrUnsupported }
