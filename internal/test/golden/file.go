package golden

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Check compares a text with a golden file. While [Updating] it writes the file instead, if it
// differs, and reports that. The error is for the test's output.
func Check(file, got string) (wrote bool, err error) {
	content, err := os.ReadFile(file)
	want := strings.ReplaceAll(string(content), "\r\n", "\n") // git may check it out so
	switch missing := errors.Is(err, fs.ErrNotExist); {
	case err != nil && !missing:
		return false, fmt.Errorf("read the golden file: %w", err)
	case !missing && want == got:
		return false, nil
	case Updating():
		return true, write(file, got)
	case missing:
		return false, fmt.Errorf("there is no golden file %s: %s writes it. It would be:\n%s", file, howToUpdate, got)
	}
	return false, fmt.Errorf("%s is not what the test has got: %s accepts it. The difference (-file +got):\n%s",
		file, howToUpdate, Diff(want, got))
}

// write replaces a file, which is never half written.
func write(file, text string) error {
	err := os.MkdirAll(filepath.Dir(file), 0o777)
	if err != nil {
		return fmt.Errorf("write the golden file: %w", err)
	}
	next := file + ".next"
	if err = os.WriteFile(next, []byte(text), 0o666); err == nil {
		err = os.Rename(next, file)
	}
	if err != nil {
		return fmt.Errorf("write the golden file: %w", err)
	}
	return nil
}
