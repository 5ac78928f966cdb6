package live

import (
	"os"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/features"
)

// hasDebt tells kernels that park threads only when they return to user mode (6.18): before, there is no debt to provoke.
func hasDebt(t testing.TB) bool {
	t.Helper()
	return features.ReadKernel(os.DirFS("/"), features.Unknown, features.Unknown).TaskThrottle == features.Yes
}
