package many

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/bench/internal/stats"
	"github.com/kates-go/kates/bench/internal/usage"
	"github.com/kates-go/kates/fleet"
	"github.com/kates-go/kates/kates"
)

// Result is what was measured.
type Result struct {
	First      time.Duration // from the making of the fleet to the first snapshot
	StartCPU   float64       // seconds, to the first snapshot
	IdleCPU    float64       // seconds for each second in which nothing changes
	Heap       float64       // bytes that live, above those of the process before
	RSS        float64       // bytes
	Goroutines int
	Fleet      []float64 // ms from before a change to the snapshot that has it
	Alone      []float64 // the same for one client alone, in the same process before
	Update     []float64 // µs that such a snapshot took
}

type single struct{ Maps []*kates.ConfigMap }

type whole struct {
	Maps     map[string][]*kates.ConfigMap
	Services []fleet.Object[*kates.Service]
	Missing  []fleet.Missing
}

// Measure measures one client alone on the first server, and then a fleet of all.
func Measure(ctx context.Context, addresses []string, changes int, deadline, idle time.Duration) (r Result, err error) {
	if r.Alone, err = alone(ctx, addresses[0], changes); err != nil {
		return r, err
	}
	before, cpu, began := usage.LiveBytes(), seconds(), time.Now()
	f, err := fleet.New(fleet.Options{Interval: time.Millisecond, Deadline: deadline})
	if err != nil {
		return r, err
	}
	defer f.Close()
	for i, address := range addresses {
		if err := f.Add(fmt.Sprintf("c-%04d", i), &rest.Config{Host: address}); err != nil {
			return r, err
		}
	}
	s, err := fleet.Watch[whole](ctx, f)
	if err != nil {
		return r, err
	}
	defer s.Close()
	var snap whole
	for complete := false; !complete; {
		<-s.Changed()
		if complete, err = s.Update(ctx, &snap); err != nil {
			return r, err
		}
	}
	r.First, r.StartCPU = time.Since(began), seconds()-cpu
	fmt.Fprintf(os.Stderr, "%d clusters are shown, %d are missing\n", len(snap.Maps), len(snap.Missing))
	cpu = seconds()
	time.Sleep(idle)
	r.IdleCPU = (seconds() - cpu) / idle.Seconds()
	r.Fleet, err = delays(ctx, addresses[0], changes, s.Changed(), func() ([]*kates.ConfigMap, error) {
		began := time.Now()
		_, err := s.Update(ctx, &snap)
		r.Update = append(r.Update, float64(time.Since(began).Nanoseconds())/1e3)
		return snap.Maps["c-0000"], err
	})
	r.Heap, r.Goroutines, r.RSS = usage.LiveBytes()-before, runtime.NumGoroutine(), usage.ResidentBytes()
	return r, err
}

func alone(ctx context.Context, address string, changes int) ([]float64, error) {
	c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: address}, kates.WithInterval(time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	s, err := kates.Watch[single](ctx, c)
	if err != nil {
		return nil, err
	}
	<-s.Changed()
	return delays(ctx, address, changes, s.Changed(), func() ([]*kates.ConfigMap, error) {
		var snap single
		_, err := s.Update(ctx, &snap)
		return snap.Maps, err
	})
}

// delays makes one change after another, each when the last one is in a snapshot.
func delays(ctx context.Context, address string, n int, changed <-chan struct{}, update func() ([]*kates.ConfigMap, error)) (all []float64, err error) {
	for i := range n {
		mark := fmt.Sprint(time.Now().UnixNano(), "-", i)
		time.Sleep(20 * time.Millisecond)
		began := time.Now()
		response, err := http.Get(address + "/touch?mark=" + mark)
		if err != nil {
			return nil, err
		}
		_ = response.Body.Close()
		for seen := false; !seen; {
			select {
			case <-changed:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			maps, err := update()
			if err != nil {
				return nil, err
			}
			for _, m := range maps {
				seen = seen || m.Annotations["mark"] == mark
			}
		}
		all = append(all, float64(time.Since(began).Microseconds())/1e3)
	}
	return all, nil
}

func seconds() float64 {
	s, err := usage.CPUSeconds()
	if err != nil {
		panic(err) // a system that has getrusage
	}
	return s
}

// String is the result as a table of Markdown's rows.
func (r Result) String() string {
	var b strings.Builder
	row := func(name, format string, values ...any) {
		fmt.Fprintf(&b, "| %s | "+format+" |\n", append([]any{name}, values...)...)
	}
	row("first snapshot, s", "%.3g", r.First.Seconds())
	row("CPU until then, s", "%.3g", r.StartCPU)
	row("CPU while nothing changes, % of a core", "%.2g", 100*r.IdleCPU)
	row("live heap, MB", "%.3g", r.Heap/1e6)
	row("RSS, MB", "%.3g", r.RSS/1e6)
	row("goroutines", "%d", r.Goroutines)
	row("change to visible p50, ms", "%.3g", stats.Median(r.Fleet))
	row("change to visible p99, ms", "%.3g", stats.Percentile(r.Fleet, 99))
	row("the same, one client alone, p50, ms", "%.3g", stats.Median(r.Alone))
	row("the same, one client alone, p99, ms", "%.3g", stats.Percentile(r.Alone, 99))
	row("one Update after a change p50, µs", "%.3g", stats.Median(r.Update))
	return b.String()
}
