// Package judged says how an assertion fails, so that a test can look at the text. Tests only.
package judged

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// recorder is a test that records how it fails.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }

func (r *recorder) Fatal(args ...any) {
	r.Error(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) { r.Fatal(fmt.Sprintf(format, args...)) }

// Failure runs an assertion, and returns the text with which it fails, "" if it does not. What the
// assertion starts ends with t.
func Failure(t *testing.T, assertion func(t testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		assertion(r)
	}()
	<-done
	return strings.Join(r.failures, "\n")
}
