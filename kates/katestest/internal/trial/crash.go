package trial

import (
	"context"
	"errors"
	"fmt"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/base/tested"
	"github.com/kates-go/kates/internal/test/golden"
)

// Target is a server for one run of a program, and what happens there.
type Target struct {
	Config *rest.Config // for the program
	Reader *rest.Config // for reading all objects at the end, without faults
	Steps  []func(context.Context) error
	Close  func()
}

// Crashes runs a program once undisturbed, and then, each time on a new server, once for each
// crash before and after each of its writes. After a crash the program is started again. Whenever
// it has settled, the objects of the server have to be those of the undisturbed run. The error
// says which are not. The number is that of the crashes.
func Crashes(ctx context.Context, server func() (Target, error), program Program, o Options) (crashes int, err error) {
	want, _, err := o.live(ctx, server, program, Crash{}, nil)
	if err != nil {
		return 0, fmt.Errorf("without a crash: %w", err)
	}
	for _, after := range []bool{false, true} {
		for write := 1; ; write++ {
			got, at, err := o.live(ctx, server, program, Crash{Write: write, After: after}, want)
			if at == nil && err == nil {
				break // there are no more writes
			}
			crashes++
			where := fmt.Sprintf("a crash %s write %d (%s)", before(after), write, at)
			switch {
			case at == nil:
				return crashes, fmt.Errorf("in a run that was to have %s: %w", where, err)
			case err != nil:
				return crashes, fmt.Errorf("after %s: %w", where, err)
			}
			for i := range want {
				if got[i] != want[i] {
					return crashes, fmt.Errorf("after %s the program converges to another end%s. The objects of the server, without a crash (-) and with it (+):\n%s",
						where, phase(i, len(want)), golden.Diff(want[i], got[i]))
				}
			}
		}
	}
	return crashes, nil
}

// phase says which end it is, if there are several.
func phase(i, count int) string {
	if i == count-1 {
		return ""
	}
	return fmt.Sprintf(" before step %d of the test", i+1)
}

func before(after bool) string {
	if after {
		return "after"
	}
	return "before"
}

// live runs a program on a new server, and crashes it once. It returns the objects of the server
// after the start and after each step, and the write at which the program crashed, if it came to
// that.
func (o Options) live(ctx context.Context, server func() (Target, error), program Program, crash Crash, want []string) (ends []string, at *Call, err error) {
	target, err := server()
	if err != nil {
		return nil, nil, err
	}
	defer target.Close()
	r := Start(ctx, target.Config, program, o, crash)
	settle := func() error {
		err := r.Settle(o)
		if errors.Is(err, errCrashed) {
			at = r.rec.crashedAt()
			if r, err = r.again(ctx, target.Config, program, o); err == nil {
				err = r.Settle(o)
			}
			if err != nil {
				err = fmt.Errorf("started again: %w", err)
			}
		}
		if err != nil {
			return err
		}
		end, err := o.end(ctx, target.Reader, want, len(ends))
		ends = append(ends, end)
		return err
	}
	err = settle()
	for i, step := range target.Steps {
		if err != nil {
			break
		}
		if err = step(ctx); err != nil {
			err = fmt.Errorf("step %d of the test: %w", i+1, err)
			break
		}
		err = settle()
	}
	return ends, at, errors.Join(err, r.Stop())
}

// again starts the program again that has crashed.
func (r *Run) again(ctx context.Context, config *rest.Config, program Program, o Options) (*Run, error) {
	if err := r.Stop(); err != nil {
		return r, err
	}
	if tested.InBubble() {
		synctest.Wait() // what the server does by itself is done
	}
	return Start(ctx, config, program, o, Crash{}), nil
}

// end is the state of the server when the program has settled. Outside of a bubble a program may
// seem to have settled only because the machine is slow. Then it gets more time until the state is
// as it should be.
func (o Options) end(ctx context.Context, reader *rest.Config, want []string, phase int) (string, error) {
	began := time.Now()
	for {
		text, err := state(ctx, reader, o.Uncompared)
		if err != nil || want == nil || text == want[phase] || tested.InBubble() || time.Since(began) > o.Within {
			return text, err
		}
		select {
		case <-time.After(o.Quiet):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
