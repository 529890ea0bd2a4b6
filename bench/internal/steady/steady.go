// Package steady is for the measurement of a program under load: events come at a steady rate, and
// each reconcile takes a second, say. It checks every snapshot, and measures how old it is and
// what it costs. Start with [Measure].
package steady

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/bench/internal/replay"
	"github.com/kates-go/kates/bench/internal/usage"
	"github.com/kates-go/kates/kates"
)

// Load is what a program has to bear.
type Load struct {
	replay.Schedule
	Reconcile time.Duration // how long the program works on a snapshot
	Interval  time.Duration // between signals, at least
	Stale     time.Duration // how long before an Update an event may be written that it lacks
}

// Result is what was measured.
type Result struct {
	Events    int       // the last snapshot has all before this one
	Snapshots int       // from the first event on, each checked
	Deltas    int       // in all of them
	Restarts  int       // lists after the first ones
	Stale     int       // snapshots that lack an event for too long, or whose signal comes too late
	Age       []float64 // ms since an event was written, when an Update begins that lacks it
	Wait      []float64 // ms without a signal, while the program is idle and an event is written
	Shown     []float64 // ms since an event was written that is not shown, before each Update
	Update    []float64 // ms that an Update took
	Heap      []float64 // MB that live, above those of the process before, sampled
	RSS       []float64 // MB, sampled with it
	Peak      float64   // MB, of RSS
	CPU       float64   // seconds, with the checks
	Waited    float64   // seconds in which a thread could run, and had no CPU
	Machine   []float64 // load average, sampled with memory
	Sent      replay.Sent
}

// samples is how often memory is measured. Each sample needs a garbage collection.
const samples = 40

// Measure watches a server (replay.Steady) until the last event is shown. It fails if a snapshot
// is wrong (see checker), or if the last event is not shown two minutes after it is due. Whether
// the load was held, nothing was stale and memory did not grow, [Result.Err] says.
func Measure(ctx context.Context, address string, load Load) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, load.Lasts+2*time.Minute)
	defer cancel()
	m := measurement{load: load, address: address, check: newChecker(load.Schedule)}
	m.base = usage.LiveBytes()
	c, err := kates.NewClientFromRESTConfig(&rest.Config{Host: address}, kates.WithInterval(load.Interval))
	if err != nil {
		return m.r, err
	}
	defer c.Close()
	if m.watch, err = kates.Watch[shown](ctx, c); err != nil {
		return m.r, err
	}
	defer m.watch.Close()
	err = m.run(ctx)
	return m.r, err
}

// measurement is one that is under way.
type measurement struct {
	load    Load
	address string
	watch   *kates.Snapshots[shown]
	check   *checker
	base    float64   // live bytes, without the client
	start   time.Time // of the events
	sampled time.Time
	looks   []look
	r       Result
}

func (m *measurement) run(ctx context.Context) error {
	// The first snapshot is complete, and before the events.
	if err := m.signal(ctx); err != nil {
		return err
	}
	if _, err := m.update(ctx); err != nil {
		return err
	}
	var begun replay.Begun
	if err := ask(ctx, m.address+replay.BeginPath, &begun); err != nil {
		return err
	}
	m.start = time.Unix(0, begun.UnixNano)
	waited := usage.WaitedSeconds()
	cpu, err := usage.CPUSeconds()
	if err != nil {
		return err
	}
	for err == nil && !m.check.done() {
		err = m.reconcile(ctx)
	}
	// What there is is told, also of a load that is not borne.
	end, err2 := usage.CPUSeconds()
	m.r.CPU, m.r.Waited, m.r.Events = end-cpu, usage.WaitedSeconds()-waited, m.check.missing()
	return errors.Join(err, err2, m.finish(ctx))
}

// finish asks the server what it has sent, and judges the snapshots.
func (m *measurement) finish(ctx context.Context) (err error) {
	if m.r.Peak, err = usage.PeakBytes(); err != nil {
		return err
	}
	m.r.Peak /= 1e6
	for _, q := range m.watch.Status().Queries {
		m.r.Restarts += q.Restarts
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if err := ask(ctx, m.address+replay.SentPath, &m.r.Sent); err != nil {
		return err
	}
	m.r.judge(m.load, m.looks)
	return nil
}

// signal waits until there is something new.
func (m *measurement) signal(ctx context.Context) error {
	select {
	case <-m.watch.Changed():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no signal, %d of %d events are shown: %w", m.check.missing(), m.load.Total(), ctx.Err())
	}
}

// update takes a snapshot and checks it.
func (m *measurement) update(ctx context.Context) (*shown, error) {
	snap := new(shown)
	began := time.Now()
	changed, err := m.watch.Update(ctx, snap)
	if err != nil {
		return nil, err
	}
	m.r.Update = append(m.r.Update, ms(time.Since(began)))
	return snap, m.check.snapshot(snap, changed)
}

// reconcile waits for a snapshot, takes it, and works on it.
func (m *measurement) reconcile(ctx context.Context) error {
	l := look{idle: time.Since(m.start), before: m.check.next}
	if err := m.signal(ctx); err != nil {
		return err
	}
	l.at = time.Since(m.start)
	snap, err := m.update(ctx)
	if err != nil {
		return err
	}
	l.after = m.check.next
	m.looks, m.r.Deltas = append(m.looks, l), m.r.Deltas+len(snap.Deltas)
	if now := time.Now(); now.Sub(m.sampled) >= m.load.Lasts/samples {
		m.sampled = now
		m.r.Heap = append(m.r.Heap, (usage.LiveBytes()-m.base)/1e6)
		m.r.RSS = append(m.r.RSS, usage.ResidentBytes()/1e6)
		m.r.Machine = append(m.r.Machine, usage.LoadAverage())
	}
	select {
	case <-time.After(m.load.Reconcile):
		return m.check.held(snap)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask reads an answer of the server to whoever measures.
func ask(ctx context.Context, url string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return json.NewDecoder(response.Body).Decode(into)
}
