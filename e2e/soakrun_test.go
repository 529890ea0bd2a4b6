//go:build soak

package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// enoughLost is how many revisions a restore takes away at least. A client finds a restore by
// versions alone (rule 8 of package coherence), and servers that start write some.
const enoughLost = 500

// This is the run under chaos against three API servers on one etcd. In each round servers are
// killed and paused, etcd is killed and compacted, rights and definitions change. At the end of a
// round etcd may be restored from the newest backup, which may be of an earlier round. etcd's own
// history and the audit logs of the servers are the judges.
func TestG4G5G6G7UnderChaosOfThreeServersOnOneEtcd(t *testing.T) {
	// Connections to a paused server are noticed by pings.
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "3")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "3")
	t.Logf("seed %d, for %s, logs in %s", *seed, *soakTime, soakDir)
	s := newSoaking(t)
	stop := s.recording(1)
	defer func() { stop() }()
	for n, c := range s.clients {
		for i, name := range soakWays[n] {
			j, err := c.witness(t.Context(), t, name, c.namespaces[i%2])
			require.NoError(t, err)
			j.name = fmt.Sprintf("client %d, %s", n, j.name)
			c.trials = append(c.trials, newTrial(j, 0))
		}
	}
	began := time.Now()
	for round := 1; !t.Failed() && time.Since(began) < *soakTime; round++ {
		s.round(&stop)
		t.Logf("%s, round %d: %s", time.Since(began).Round(time.Second), round, s.summary())
	}
	if !t.Failed() {
		for _, c := range s.clients {
			for _, j := range c.trials {
				j.settled()
			}
		}
	}
	for _, c := range s.clients {
		for _, j := range c.trials {
			j.close()
		}
	}
	if !t.Failed() {
		assert.NoError(t, os.RemoveAll(soakDir))
	}
}

// recording keeps the chronicle from a revision on, until the returned function is called.
func (s *soaking) recording(sinceRevision int64) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var recorder sync.WaitGroup
	recorder.Go(func() { assert.NoError(s, s.c.record(ctx, s.Cluster, sinceRevision)) })
	return func() {
		cancel()
		recorder.Wait()
	}
}

// round runs writers, readers and faults for a while, then restores etcd or not, and judges.
func (s *soaking) round(stop *func()) {
	random := func() *rand.Rand { return rand.New(rand.NewPCG(*seed, s.random.Uint64())) }
	faults, over := context.WithTimeout(s.Context(), time.Duration(15+s.random.IntN(30))*time.Second)
	defer over()
	endReading, endWriting := s.reading(), s.writing()
	var visitors sync.WaitGroup
	guests := make([][]*trial, len(s.clients))
	for n, c := range s.clients {
		r := random()
		visitors.Go(func() { guests[n] = s.visit(faults, c, r) })
	}
	var breaking sync.WaitGroup
	ofServers, ofStorage := random(), random()
	breaking.Go(func() { s.ofServers(faults, ofServers) })
	breaking.Go(func() { s.ofStorage(faults, ofStorage) })
	breaking.Wait()
	visitors.Wait()
	began := time.Now()
	if s.random.IntN(3) > 0 && s.backup != nil && s.mayRestore() {
		s.restore(endWriting, stop)
		s.counted("restores", 1)
	} else {
		endWriting()
	}
	s.drain()
	endReading()
	s.settle(began)
	for _, all := range guests {
		for _, j := range all {
			s.sentence(j)
		}
		s.counted("watches opened for a while", len(all))
	}
	s.each(s.sentence)
	s.audit()
	var all []*trial
	for _, c := range s.clients {
		all = append(all, c.trials...)
	}
	if !s.Failed() {
		s.c.forget(all, s.mayReturn())
	}
	s.counted("rounds", 1)
}

// backUp makes a backup in place of the one before.
func (d *disaster) backUp() {
	if d.backup != nil {
		assert.NoError(d, d.backup.Remove())
		d.backup = nil
	}
	d.revision(&d.from)
	b, err := d.Backup()
	if !assert.NoError(d, err) {
		return
	}
	d.revision(&d.since)
	d.backup = &b
}

// revision asks for etcd's revision.
func (d *disaster) revision(into *int64) {
	d.until("etcd's revision", func() (err error) {
		*into, err = d.Revision(context.Background())
		return err
	})
}

// mayReturn is a revision that no restore goes back behind: the next one may still use the backup
// of an earlier round.
func (d *disaster) mayReturn() int64 {
	if d.backup == nil {
		return math.MaxInt64
	}
	return d.from
}

// mayRestore waits until the clients' watches are past what the backup has, by enough. On a loaded
// machine that may take too long, and there is no restore.
func (s *soaking) mayRestore() bool {
	for deadline := time.Now().Add(patience); ; pause(s.Context(), 50*time.Millisecond) {
		now, err := s.Revision(context.Background())
		if err == nil && now >= s.since+enoughLost {
			break
		}
		if time.Now().After(deadline) {
			s.counted("restores that had too little to lose", 1)
			return false
		}
	}
	for _, c := range s.clients {
		s.until("the client's watches are as new as the server", func() error {
			return brieflyFor(c.client.Sync)
		})
	}
	return !s.Failed()
}

// restore kills all servers under the writers, and goes back to the backup.
func (s *soaking) restore(endWriting func(), stop *func()) {
	began := time.Now()
	for _, server := range s.servers {
		s.dies(server, began)
	}
	endWriting()
	s.drain()
	(*stop)()
	require.NoError(s, s.Restore(*s.backup))
	revision, err := s.Revision(s.Context())
	require.NoError(s, err)
	require.NoError(s, s.c.restored(began, revision, []*world{s.clients[0].world, s.clients[1].world}))
	*stop = s.recording(revision + 1)
	for _, server := range s.servers {
		assert.NoError(s, server.Start())
	}
	s.whole(began)
}

// drain waits until the chronicle has all that etcd has.
func (s *soaking) drain() {
	s.until("the chronicle is complete", func() error {
		revision, err := s.Revision(context.Background())
		if err != nil {
			return err
		}
		return s.c.behind(revision)
	})
}

// settle waits until every witness shows what etcd has, with nothing held for writes (G6).
func (s *soaking) settle(healed time.Time) {
	s.until("G6", func() error {
		s.drain()
		var errs []error
		for _, c := range s.clients {
			if err := brieflyFor(c.client.Sync); err != nil {
				return err
			}
		}
		for _, c := range s.clients {
			for _, j := range c.trials {
				if !j.update() {
					return nil // it has failed
				}
				errs = append(errs, j.present(s.c), j.calm(s.c))
			}
		}
		return errors.Join(errs...)
	})
	took := int(time.Since(healed).Seconds())
	s.sums["longest time to settle, in seconds"] = max(took, s.sums["longest time to settle, in seconds"])
}

// sentence judges what a witness has seen in the round.
func (s *soaking) sentence(j *trial) {
	before, looks := j.judged, len(j.looks)
	err := j.judge(s.c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counted("looks at an object judged", j.judged-before)
	s.counted("Updates", looks)
	assert.NoError(s, err)
}

// audit judges the calls of own writers by the servers' logs.
func (s *soaking) audit() {
	events := 0
	take := func(e auditEvent) {
		events++
		for _, c := range s.clients {
			assert.NoError(s, c.ledger.audit(e))
		}
	}
	// A server writes its log after it has answered.
	s.until("audit", func() error {
		var errs []error
		for _, a := range s.logs {
			errs = append(errs, a.next(take))
		}
		for _, c := range s.clients {
			_, _, err := c.ledger.judge(s.cut)
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
	for _, c := range s.clients {
		judged, unknown, _ := c.ledger.judge(s.cut)
		s.counted("calls judged by audit logs", judged)
		s.counted("calls whose log died with its server", unknown)
		c.ledger.forget()
	}
	s.counted("audit events", events)
}
