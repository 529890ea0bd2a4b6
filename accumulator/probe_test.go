package accumulator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/accumulator/stream"
)

// idle is a little longer than the idle time-out and what follows it.
const idle = 3 * time.Minute

func TestG5ARestoredServerIsFoundWhereAResumedWatchIsDeaf(t *testing.T) {
	for name, config := range ways {
		for _, cut := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", cut", false: ", silent"}[cut], func(t *testing.T) {
				bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
					s.create("as", thing("old"))
					backup := s.rev
					a := watching(t, streams, Options{}, simQuery("A", "as"))
					var snap one
					require.True(t, signalled(a))
					o := own{s, streams}
					o.put("as", thing("lost"), 0)
					synctest.Wait()
					update(t, a, &snap)
					require.Equal(t, []string{"lost", "old"}, names(snap.A))
					s.rewind(backup)
					if cut {
						s.cut()
						after(10 * time.Second)
					} else {
						after(idle) // nothing else shows it
					}
					synctest.Wait()
					update(t, a, &snap)
					assert.Equal(t, []string{"old"}, names(snap.A), "shown as it is")
					o.put("as", thing("new"), 0)
					update(t, a, &snap)
					assert.Equal(t, []string{"new", "old"}, names(snap.A), "and coherent again")
					synctest.Wait()
					assert.Zero(t, a.Status()[0].Pending)
				})
			})
		}
	}
}

// The watch had not reached the backup, and can resume. What the watch does not have, the server
// does not have either.
func TestG6AnOwnWriteThatABackupLacksIsGoneWithIt(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("old"))
				backup := s.rev
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				require.True(t, signalled(a))
				s.late(time.Hour)
				o := own{s, streams}
				o.put("as", thing("lost"), 0)
				var snap one
				update(t, a, &snap)
				require.Equal(t, []string{"lost", "old"}, names(snap.A))
				s.restore(backup)
				after(10 * time.Second)
				synctest.Wait()
				update(t, a, &snap)
				assert.Equal(t, []string{"old"}, names(snap.A))
				assert.Zero(t, a.Status()[0].Pending)
				o.put("as", thing("new"), 0)
				update(t, a, &snap)
				assert.Equal(t, []string{"new", "old"}, names(snap.A), "and coherent again")
			})
		})
	}
}

func TestG6AnOwnWriteThatNoEventConfirmsEndsWithinAnIdleTimeout(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				q := simQuery("A", "as")
				q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
				s.create("as", thing("x", "in", "yes"))
				a := watching(t, streams, Options{}, q)
				require.True(t, signalled(a))
				var snap one
				update(t, a, &snap)
				// this watch never brings anything
				own{s, streams}.put("as", thing("elsewhere"), 0)
				require.Equal(t, 1, a.Status()[0].Pending)
				after(idle)
				synctest.Wait()
				assert.Zero(t, a.Status()[0].Pending, "the server is quiet: nothing may be held")
				assert.False(t, signalled(a))
				assert.False(t, update(t, a, &snap).Changed)
				s.mu.Lock()
				defer s.mu.Unlock()
				assert.Equal(t, 2, s.opened("as"))
			})
		})
	}
}

func TestG2AHalfOpenWatchIsOpenedAnewWithoutAList(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("x"))
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				require.True(t, signalled(a))
				var dead *simWatch
				s.mu.Lock()
				for w := range s.cuts {
					dead = w
				}
				s.delayOf = func(w *simWatch) time.Duration {
					if w == dead {
						return 24 * time.Hour
					}
					return 0
				}
				s.mu.Unlock()
				s.create("as", thing("y"))
				after(idle)
				synctest.Wait()
				var snap one
				update(t, a, &snap)
				assert.Equal(t, []string{"x", "y"}, names(snap.A))
				s.mu.Lock()
				defer s.mu.Unlock()
				assert.Equal(t, 1, s.opened("as"))
				assert.NotContains(t, s.cuts, dead, "and the dead one is closed")
			})
		})
	}
}

func TestG2IdleConnectionsAreSuspectAfterSilenceAndWhereNoAnswerCame(t *testing.T) {
	suspected := 0 // only the goroutine of the one stream uses it
	bubble(t, stream.Config{Suspect: func() { suspected++ }}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		require.True(t, signalled(a))
		s.cut()
		after(10 * time.Second)
		synctest.Wait()
		assert.Zero(t, suspected, "a server that ends a connection is there")
		before := 0
		s.failing(func(verb, _ string) error {
			before = suspected
			return nil
		})
		after(idle)
		synctest.Wait()
		assert.Equal(t, 1, suspected)
		assert.Equal(t, 1, before, "before the server is asked")
		s.failing(nil)
		s.mu.Lock()
		s.listAnswer = func(string) time.Duration { return 24 * time.Hour }
		s.mu.Unlock()
		s.cut()
		after(31 * time.Second)
		synctest.Wait()
		assert.Equal(t, 2, suspected, "the probe had no answer")
	})
}

func TestG8WhoIsWokenByAListFindsItsStatusWell(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		s.failing(func(string, string) error { return apierrors.NewServiceUnavailable("not yet") })
		watching(t, streams, Options{}, simQuery("A", "as"))
		synctest.Wait()
		var found []State
		var l *stream.Listener
		l, err := streams.Join(simResource("as"), stream.Spec{}, stream.ListenOptions{Trouble: func() {}, Wake: func() {
			if st := l.State(); st.Ready() {
				found = append(found, st.Health)
			}
		}})
		require.NoError(t, err)
		assert.Equal(t, 1, streams.Len(), "it is the same stream")
		s.failing(nil)
		after(time.Minute)
		synctest.Wait()
		assert.Equal(t, []State{Synced}, found)
	})
}

func TestG11AWatchThatEndsAtOnceIsNotOpenedInALoop(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		require.True(t, signalled(a))
		ends := make(chan struct{})
		go func() {
			for {
				s.cut()
				select {
				case <-ends:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		s.mu.Lock()
		before := s.watches["as"]
		s.mu.Unlock()
		after(time.Minute)
		close(ends)
		s.mu.Lock()
		assert.Less(t, s.watches["as"]-before, 20)
		assert.LessOrEqual(t, s.probes["as"], s.watches["as"], "nor is the server asked more often")
		s.mu.Unlock()
		after(time.Minute)
		s.create("as", thing("x"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, names(snap.A), "it goes on when the server lets it")
	})
}

func TestG8WhileNoWatchIsOpenTheStatusSaysSo(t *testing.T) {
	bubble(t, stream.Config{}, func(t *testing.T, s *sim, streams *stream.Set) {
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		require.True(t, signalled(a))
		for range 8 { // each makes the pause longer
			require.Equal(t, Synced, a.Status()[0].State)
			s.cut()
			synctest.Wait()
			assert.Equal(t, Retrying, a.Status()[0].State)
			assert.Contains(t, a.Status()[0].Error, "as soon as it was open")
			for s.watching() == 0 {
				after(10 * time.Millisecond)
				synctest.Wait()
			}
		}
	})
}

func TestG2TheServersRetryAfterIsHonoured(t *testing.T) {
	for name, config := range ways {
		t.Run(name, func(t *testing.T) {
			bubble(t, config, func(t *testing.T, s *sim, streams *stream.Set) {
				asked := 0
				s.failing(func(string, string) error {
					asked++
					return apierrors.NewTooManyRequests("not now", 60)
				})
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				after(59 * time.Second)
				synctest.Wait()
				assert.Equal(t, 1, asked)
				status := a.Status()[0]
				assert.Equal(t, Retrying, status.State)
				assert.Contains(t, status.Error, "not now")
				s.failing(nil)
				after(time.Minute)
				assert.True(t, signalled(a))
			})
		})
	}
}

func TestG1AListThatExpiresBetweenItsPagesIsMadeAnewAndWhole(t *testing.T) {
	bubble(t, stream.Config{PageSize: 2}, func(t *testing.T, s *sim, streams *stream.Set) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			s.create("as", thing(name))
		}
		lists := 0
		s.failing(func(verb, _ string) error {
			if lists++; verb == "list" && lists == 2 {
				s.remove("as", "a") // its page has been read
				s.mu.Lock()
				s.oldest = s.rev
				s.mu.Unlock()
			}
			return nil
		})
		a := watching(t, streams, Options{}, simQuery("A", "as"))
		require.True(t, signalled(a))
		var snap one
		require.True(t, update(t, a, &snap).Changed)
		assert.Equal(t, []string{"b", "c", "d", "e"}, names(snap.A))
	})
}

func TestG1AServerThatDoesNotStreamListsIsAskedForPages(t *testing.T) {
	for name, refuse := range map[string]func(s *sim){
		"it says so": func(s *sim) {
			s.failing(func(verb, _ string) error {
				if s.mu.Lock(); verb == "watch" && s.lists["as"] == 0 {
					s.mu.Unlock()
					return apierrors.NewBadRequest("sendInitialEvents is forbidden")
				}
				s.mu.Unlock()
				return nil
			})
		},
		"it says nothing": func(s *sim) {
			s.delayOf = nil
			s.listAnswer = func(string) time.Duration { // of the initial events too
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.lists["as"] == 0 {
					return time.Hour
				}
				return 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim, streams *stream.Set) {
				s.create("as", thing("x"))
				refuse(s)
				a := watching(t, streams, Options{}, simQuery("A", "as"))
				after(time.Minute)
				require.True(t, signalled(a))
				s.create("as", thing("y"))
				synctest.Wait()
				var snap one
				update(t, a, &snap)
				assert.Equal(t, []string{"x", "y"}, names(snap.A))
			})
		})
	}
}
