package katestest

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/kates-go/kates/internal/base/tested"
	"github.com/kates-go/kates/internal/test/golden"
	"github.com/kates-go/kates/kates"
)

// Until waits for a snapshot that satisfies a function, and returns it. It looks at the current
// snapshot, and at each later one that the watch signals; it does not poll. The test is the only
// reader of the snapshots meanwhile. Objects are read-only.
//
//	snapshots, err := kates.Watch[Snapshot](t.Context(), client)
//	…
//	snap := katestest.Until(t, snapshots, func(s *Snapshot) bool { return len(s.Services) == 2 })
//
// The test ends if none comes [Within] a time. The failure shows the last snapshot, as [Golden]
// would, and how it differs from the one before. The default time ends shortly before the time
// limit of the whole test binary (go test -timeout), and in a bubble of [testing/synctest] after
// an hour.
func Until[S any](t testing.TB, snapshots *kates.Snapshots[S], satisfied func(*S) bool, options ...UntilOption) *S {
	t.Helper()
	texts, snap, err := await(t, snapshots, satisfied, options)
	if err != nil {
		t.Fatalf("no snapshot satisfied the function: %v", texts.after(err))
	}
	return snap
}

// UntilEqual waits for a snapshot that is equal to the wanted one, and returns it. What a server
// or a decoder fills in is not compared: versions, UIDs, generations, times, managed fields, and
// the kinds of Go types. So are fields for deltas. A nil list is equal to an empty one. Defaults
// of the server are compared: the wanted snapshot has them.
//
// It waits as [Until] does. The failure shows how the last snapshot differs from the wanted one.
func UntilEqual[S any](t testing.TB, snapshots *kates.Snapshots[S], wanted *S, options ...UntilOption) *S {
	t.Helper()
	want := bare(t, wanted)
	var got string
	_, snap, err := await(t, snapshots, func(s *S) bool {
		got = bare(t, s)
		return got == want
	}, options)
	switch {
	case err != nil && got == "":
		t.Fatalf("no snapshot was as wanted: %v", err)
	case err != nil:
		t.Fatalf("no snapshot was as wanted: %v. The last one (-wanted +got):\n%s", err, golden.Diff(want, got))
	}
	return snap
}

// Snapshot returns the first complete snapshot of a watch, which it ends. It waits as [Until]
// does.
func Snapshot[S any](t testing.TB, client *kates.Client, queries ...kates.Query) *S {
	t.Helper()
	snapshots, err := kates.Watch[S](t.Context(), client, queries...)
	if err != nil {
		t.Fatal(err)
	}
	defer snapshots.Close()
	return Until(t, snapshots, func(*S) bool { return true })
}

// Golden compares values with the golden file, which is YAML, and fails the test if they differ.
// Values are snapshots, objects, a [Sequence], or texts; several are several documents. The file
// is written, if it differs, when the test runs with the flag -update:
//
//	katestest.Golden(t, "testdata/web.yaml", katestest.Snapshot[Output](t, client))
//
//	go test ./mypackage -run TestWeb -update
//
// What differs from run to run is masked. A version is <version 1>, a UID <uid 1>: equal values
// have equal numbers. A time, in a field of such a name, is <time>. Managed fields are left out.
// The values of Secrets are shown as a hash (64 bits of SHA-256), and so are their annotations. A
// hash does not hide what can be guessed, so no real secrets should be in tests.
//
// If the test package has a flag -update of its own, then nothing is defined twice: Golden goes by
// that flag, if it is a boolean. The flag -katestest.update does the same in each test binary, and
// belongs to no one else. Programs that are no tests have neither.
func Golden(t testing.TB, file string, values ...any) {
	t.Helper()
	text, err := golden.Text(values...)
	if err != nil {
		t.Fatal(err)
	}
	wrote, err := golden.Check(file, text)
	switch {
	case err != nil:
		t.Error(err)
	case wrote:
		t.Logf("%s is written", file)
	}
}

// UntilOption is an option of [Until] and [UntilEqual].
type UntilOption interface{ setUntil(*time.Duration) }

// WithinOption is an option of whatever waits.
type WithinOption time.Duration

func (o WithinOption) setUntil(limit *time.Duration) { *limit = time.Duration(o) }
func (o WithinOption) setProgram(s *programSettings) { s.Within = time.Duration(o) }

// Within is how long [Until] and [UntilEqual] wait for a snapshot, and [Running.Settles],
// [Settles] and [CrashAnywhere] for a program to settle. The default for programs is a day in a
// bubble, and 30 seconds elsewhere.
func Within(d time.Duration) WithinOption { return WithinOption(d) }

// untilLimit is how long to wait, 0 for as long as the test may.
func untilLimit(t testing.TB, options []UntilOption) (limit time.Duration) {
	if tested.InBubble() {
		limit = time.Hour
	} else if d, has := t.(interface{ Deadline() (time.Time, bool) }); has {
		if end, ends := d.Deadline(); ends {
			left := time.Until(end)
			limit = max(left-min(left/10, 10*time.Second), time.Nanosecond)
		}
	}
	for _, o := range options {
		o.setUntil(&limit)
	}
	return limit
}

// lastTexts are the last two snapshots, as texts.
type lastTexts struct {
	count        int
	before, last string
}

// await reads snapshots until one satisfies. The error says why none will.
func await[S any](t testing.TB, snapshots *kates.Snapshots[S], satisfied func(*S) bool, options []UntilOption) (texts lastTexts, snap *S, err error) {
	ctx, limit := t.Context(), untilLimit(t, options)
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("none came within %s", limit))
		defer cancel()
	}
	for {
		ready := snapshots.Ready() == nil // then Update fills the struct also if nothing is new
		snap = new(S)
		changed, err := snapshots.Update(context.WithoutCancel(ctx), snap)
		switch {
		case err != nil:
			return texts, nil, fmt.Errorf("the watch has ended: %w", err)
		case (changed || ready) && satisfied(snap):
			return texts, snap, nil
		case changed || ready && texts.count == 0:
			text, err := golden.Text(snap)
			if err != nil {
				return texts, nil, err
			}
			texts = lastTexts{texts.count + 1, texts.last, text}
		}
		select {
		case <-snapshots.Changed():
		case <-ctx.Done():
			err := context.Cause(ctx)
			if why := cmp.Or(snapshots.Ready(), snapshots.Status().Err()); why != nil {
				err = fmt.Errorf("%w (%w)", err, why)
			}
			return texts, nil, err
		}
	}
}

// after is the text of a failure.
func (l lastTexts) after(err error) string {
	var text strings.Builder
	switch l.count {
	case 0:
		fmt.Fprintf(&text, "%v, and none was complete", err)
	case 1:
		fmt.Fprintf(&text, "%v. The only one:\n%s", err, l.last)
	default:
		fmt.Fprintf(&text, "%v. The last of %d:\n%s\nThe last change (-before +after):\n%s", err, l.count, l.last, golden.Diff(l.before, l.last))
	}
	return text.String()
}

// bare is a snapshot as a text, without what servers fill in, and without deltas.
func bare[S any](t testing.TB, snap *S) string {
	t.Helper()
	part := *snap
	if v := reflect.ValueOf(&part).Elem(); v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() && f.Type() == reflect.TypeFor[[]*kates.Delta]() {
				f.SetZero()
			}
		}
	}
	text, err := golden.Bare(part)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
