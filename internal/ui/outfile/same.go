package outfile

import "path/filepath"

// Same tells two names of one file, which need not be there yet.
func Same(a, b string) bool {
	where := func(name string) string {
		if there, err := filepath.EvalSymlinks(name); err == nil {
			return there
		}
		folder, err := filepath.EvalSymlinks(filepath.Dir(name))
		if err != nil {
			folder = filepath.Dir(name)
		}
		return filepath.Join(folder, filepath.Base(name))
	}
	absA, errA := filepath.Abs(where(a))
	absB, errB := filepath.Abs(where(b))
	return errA == nil && errB == nil && absA == absB
}
