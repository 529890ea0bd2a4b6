package accumulator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/engine/collect"
	"github.com/kates-go/kates/internal/engine/stream"
	"github.com/kates-go/kates/internal/engine/streamset"
	"github.com/kates-go/kates/internal/object"
	"github.com/kates-go/kates/internal/test/suite/sim"
)

// idle is a little longer than the idle time-out and what follows it.
const idle = 3 * time.Minute

func TestG5ARestoredServerIsFoundWhereAResumedWatchIsDeaf(t *testing.T) {
	for name, config := range sim.Ways {
		for _, cut := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", cut", false: ", silent"}[cut], func(t *testing.T) {
				sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
					s.Create("as", sim.Thing("old"))
					backup := s.Rev
					a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
					var snap one
					require.True(t, signalled(a))
					o := sim.NewClient(s, streams)
					o.Put("as", sim.Thing("lost"), 0)
					synctest.Wait()
					update(t, a, &snap)
					require.Equal(t, []string{"lost", "old"}, sim.Names(snap.A))
					s.Rewind(backup)
					if cut {
						s.Cut()
						sim.After(10 * time.Second)
					} else {
						sim.After(idle) // nothing else shows it
					}
					synctest.Wait()
					update(t, a, &snap)
					assert.Equal(t, []string{"old"}, sim.Names(snap.A), "shown as it is")
					o.Put("as", sim.Thing("new"), 0)
					update(t, a, &snap)
					assert.Equal(t, []string{"new", "old"}, sim.Names(snap.A), "and coherent again")
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
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("old"))
				backup := s.Rev
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				require.True(t, signalled(a))
				s.Late(time.Hour)
				o := sim.NewClient(s, streams)
				o.Put("as", sim.Thing("lost"), 0)
				var snap one
				update(t, a, &snap)
				require.Equal(t, []string{"lost", "old"}, sim.Names(snap.A))
				s.Restore(backup)
				sim.After(10 * time.Second)
				synctest.Wait()
				update(t, a, &snap)
				assert.Equal(t, []string{"old"}, sim.Names(snap.A))
				assert.Zero(t, a.Status()[0].Pending)
				o.Put("as", sim.Thing("new"), 0)
				update(t, a, &snap)
				assert.Equal(t, []string{"new", "old"}, sim.Names(snap.A), "and coherent again")
			})
		})
	}
}

func TestG6AnUnsettledWriteThatABackupLacksIsGoneWithIt(t *testing.T) {
	q := sim.Query("A", "as")
	q.Fields = fields.OneTermEqualSelector("spec.node", "")
	sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Create("as", sim.Thing("old"))
		backup := s.Rev
		a := watching(t, streams, collect.Options{}, q)
		synctest.Wait()
		s.Late(time.Hour)
		s.Failing(func(verb, _ string) error {
			if verb == "list" {
				return apierrors.NewInternalError(errors.New("gone"))
			}
			return nil
		})
		sim.NewClient(s, streams).Put("as", sim.Thing("lost"), 0)
		require.Equal(t, 1, a.Status()[0].Unsettled)
		s.Failing(nil)
		s.Restore(backup)
		sim.After(10 * time.Second)
		synctest.Wait()
		var snap one
		update(t, a, &snap)
		require.Equal(t, []string{"old"}, sim.Names(snap.A))
		assert.Zero(t, a.Status()[0].Unsettled, "its version is of the old history")
		lists := a.Status()[0].Restarts
		sim.After(3 * idle)
		synctest.Wait()
		assert.Equal(t, lists, a.Status()[0].Restarts, "and no list is made for it")
	})
}

func TestG6AnOwnWriteThatNoEventConfirmsEndsWithinAnIdleTimeout(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				q := sim.Query("A", "as")
				q.Labels = labels.SelectorFromSet(labels.Set{"in": "yes"})
				s.Create("as", sim.Thing("x", "in", "yes"))
				a := watching(t, streams, collect.Options{}, q)
				require.True(t, signalled(a))
				var snap one
				update(t, a, &snap)
				// this watch never brings anything
				sim.NewClient(s, streams).Put("as", sim.Thing("elsewhere"), 0)
				require.Equal(t, 1, a.Status()[0].Pending)
				sim.After(idle)
				synctest.Wait()
				assert.Zero(t, a.Status()[0].Pending, "the server is quiet: nothing may be held")
				assert.False(t, signalled(a))
				assert.False(t, update(t, a, &snap).Changed)
				s.Mu.Lock()
				defer s.Mu.Unlock()
				assert.Equal(t, 2, s.Opened("as"))
			})
		})
	}
}

func TestG2AHalfOpenWatchIsOpenedAnewWithoutAList(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				require.True(t, signalled(a))
				var dead *sim.Watch
				s.Mu.Lock()
				for w := range s.Cuts {
					dead = w
				}
				s.DelayOf = func(w *sim.Watch) time.Duration {
					if w == dead {
						return 24 * time.Hour
					}
					return 0
				}
				s.Mu.Unlock()
				s.Create("as", sim.Thing("y"))
				sim.After(idle)
				synctest.Wait()
				var snap one
				update(t, a, &snap)
				assert.Equal(t, []string{"x", "y"}, sim.Names(snap.A))
				s.Mu.Lock()
				defer s.Mu.Unlock()
				assert.Equal(t, 1, s.Opened("as"))
				assert.NotContains(t, s.Cuts, dead, "and the dead one is closed")
			})
		})
	}
}

func TestG2IdleConnectionsAreSuspectAfterSilenceAndWhereNoAnswerCame(t *testing.T) {
	suspected := 0 // only the goroutine of the one stream uses it
	sim.Bubble(t, stream.Config{Suspect: func() { suspected++ }}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(a))
		s.Cut()
		sim.After(10 * time.Second)
		synctest.Wait()
		assert.Zero(t, suspected, "a server that ends a connection is there")
		before := 0
		s.Failing(func(verb, _ string) error {
			before = suspected
			return nil
		})
		sim.After(idle)
		synctest.Wait()
		assert.Equal(t, 1, suspected)
		assert.Equal(t, 1, before, "before the server is asked")
		s.Failing(nil)
		s.Mu.Lock()
		s.ListAnswer = func(string) time.Duration { return 24 * time.Hour }
		s.Mu.Unlock()
		s.Cut()
		sim.After(31 * time.Second)
		synctest.Wait()
		assert.Equal(t, 2, suspected, "the probe had no answer")
	})
}

func TestG8WhoIsWokenByAListFindsItsStatusWell(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		s.Failing(func(string, string) error { return apierrors.NewServiceUnavailable("not yet") })
		watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		synctest.Wait()
		var found []stream.State
		var l *stream.Listener
		l, err := streams.Join(sim.Resource("as"), object.Spec{}, stream.ListenOptions{Trouble: func() {}, Wake: func() {
			if st := l.State(); st.Ready() {
				found = append(found, st.Health)
			}
		}})
		require.NoError(t, err)
		assert.Equal(t, 1, streams.Len(), "it is the same stream")
		s.Failing(nil)
		sim.After(time.Minute)
		synctest.Wait()
		assert.Equal(t, []stream.State{stream.Synced}, found)
	})
}

func TestG11AWatchThatEndsAtOnceIsNotOpenedInALoop(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(a))
		ends := make(chan struct{})
		go func() {
			for {
				s.Cut()
				select {
				case <-ends:
					return
				case <-time.After(time.Millisecond):
				}
			}
		}()
		s.Mu.Lock()
		before := s.Watches["as"]
		s.Mu.Unlock()
		sim.After(time.Minute)
		close(ends)
		s.Mu.Lock()
		assert.Less(t, s.Watches["as"]-before, 20)
		assert.LessOrEqual(t, s.Probes["as"], s.Watches["as"], "nor is the server asked more often")
		s.Mu.Unlock()
		sim.After(time.Minute)
		s.Create("as", sim.Thing("x"))
		var snap one
		synctest.Wait()
		update(t, a, &snap)
		assert.Equal(t, []string{"x"}, sim.Names(snap.A), "it goes on when the server lets it")
	})
}

func TestG8WhileNoWatchIsOpenTheStatusSaysSo(t *testing.T) {
	sim.Bubble(t, stream.Config{}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(a))
		for range 8 { // each makes the pause longer
			require.Equal(t, stream.Synced, a.Status()[0].State)
			s.Cut()
			synctest.Wait()
			assert.Equal(t, stream.Retrying, a.Status()[0].State)
			assert.Contains(t, a.Status()[0].Error, "as soon as it was open")
			for s.Watching() == 0 {
				sim.After(10 * time.Millisecond)
				synctest.Wait()
			}
		}
	})
}

func TestG2TheServersRetryAfterIsHonoured(t *testing.T) {
	for name, config := range sim.Ways {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, config, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				asked := 0
				s.Failing(func(string, string) error {
					asked++
					return apierrors.NewTooManyRequests("not now", 60)
				})
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				sim.After(59 * time.Second)
				synctest.Wait()
				assert.Equal(t, 1, asked)
				status := a.Status()[0]
				assert.Equal(t, stream.Retrying, status.State)
				assert.Contains(t, status.Error, "not now")
				s.Failing(nil)
				sim.After(time.Minute)
				assert.True(t, signalled(a))
			})
		})
	}
}

func TestG1AListThatExpiresBetweenItsPagesIsMadeAnewAndWhole(t *testing.T) {
	sim.Bubble(t, stream.Config{PageSize: 2}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			s.Create("as", sim.Thing(name))
		}
		lists := 0
		s.Failing(func(verb, _ string) error {
			if lists++; verb == "list" && lists == 2 {
				s.Remove("as", "a") // its page has been read
				s.Mu.Lock()
				s.Oldest = s.Rev
				s.Mu.Unlock()
			}
			return nil
		})
		a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
		require.True(t, signalled(a))
		var snap one
		require.True(t, update(t, a, &snap).Changed)
		assert.Equal(t, []string{"b", "c", "d", "e"}, sim.Names(snap.A))
	})
}

func TestG1AServerThatDoesNotStreamListsIsAskedForPages(t *testing.T) {
	for name, refuse := range map[string]func(s *sim.Server){
		"it says so": func(s *sim.Server) {
			s.Failing(func(verb, _ string) error {
				if s.Mu.Lock(); verb == "watch" && s.Lists["as"] == 0 {
					s.Mu.Unlock()
					return apierrors.NewBadRequest("sendInitialEvents is forbidden")
				}
				s.Mu.Unlock()
				return nil
			})
		},
		"it says nothing": func(s *sim.Server) {
			s.DelayOf = nil
			s.ListAnswer = func(string) time.Duration { // of the initial events too
				s.Mu.Lock()
				defer s.Mu.Unlock()
				if s.Lists["as"] == 0 {
					return time.Hour
				}
				return 0
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			sim.Bubble(t, stream.Config{StreamLists: true}, func(t *testing.T, s *sim.Server, streams *streamset.Set) {
				s.Create("as", sim.Thing("x"))
				refuse(s)
				a := watching(t, streams, collect.Options{}, sim.Query("A", "as"))
				sim.After(time.Minute)
				require.True(t, signalled(a))
				s.Create("as", sim.Thing("y"))
				synctest.Wait()
				var snap one
				update(t, a, &snap)
				assert.Equal(t, []string{"x", "y"}, sim.Names(snap.A))
			})
		})
	}
}
