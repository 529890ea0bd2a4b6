package fleet

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/kates/katestest"
)

// outages runs a script with a fleet and the configuration of a server, and returns the lines of
// the fleet's log that have the text.
func outages(t *testing.T, text string, script func(config *rest.Config, f *Fleet)) (lines []string) {
	s := katestest.NewServer(t)
	f := newFleet(t, logging(func(line string) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}))
	config := rest.CopyConfig(s.Config)
	script(config, f)
	synctest.Wait()
	return lines
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// interrupted wraps the transport of a configuration: requests fail while it is so, each with a
// text of its own, as a port makes one.
func interrupted(config *rest.Config) (so *atomic.Bool) {
	so = &atomic.Bool{}
	var n atomic.Int64
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if so.Load() {
				return nil, fmt.Errorf("read tcp 10.0.0.1:%d: connection reset by peer", n.Add(1))
			}
			return next.RoundTrip(r)
		})
	})
	return so
}

func TestAnOutageIsLoggedOnceWithTheTimeOfTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard time.Time
		script := func(config *rest.Config, f *Fleet) {
			fails := interrupted(config)
			if err := f.Set(Member{Name: "a", Config: config}); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				time.Sleep(time.Hour)
				fails.Store(true)
				heard = f.Cluster("a").Health().Heard
				time.Sleep(time.Hour)
				fails.Store(false)
			}
			time.Sleep(time.Hour)
		}
		lines := outages(t, "a cluster does not answer", script)
		if len(lines) != 3 {
			t.Fatalf("3 outages, and these lines:\n%s", strings.Join(lines, "\n"))
		}
		if since := heard.Format(time.RFC3339); !strings.Contains(lines[2], `"since"="`+heard.Format("2006-01-02")) || !strings.Contains(lines[2], since[11:19]) {
			t.Errorf("the last answer was at %s: %s", since, lines[2])
		}
	})
}

func TestAnEndOfAnOutageIsLoggedOnceAndASingleFailureIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := outages(t, "answer", func(config *rest.Config, f *Fleet) {
			fails := interrupted(config)
			if err := f.Set(Member{Name: "a", Config: config}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			for f.Cluster("a").Health().Error == "" { // one probe fails
				fails.Store(true)
				time.Sleep(time.Millisecond)
			}
			fails.Store(false)
			time.Sleep(time.Hour)
			fails.Store(true)
			time.Sleep(time.Hour)
			fails.Store(false)
			time.Sleep(time.Hour)
		})
		if len(lines) != 3 || !strings.Contains(lines[0], "a cluster answers") || !strings.Contains(lines[1], "does not answer") || !strings.Contains(lines[2], "a cluster answers") {
			t.Errorf("the lines:\n%s", strings.Join(lines, "\n"))
		}
	})
}

func TestAClusterThatNeverAnsweredIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := outages(t, "answer", func(config *rest.Config, f *Fleet) {
			interrupted(config).Store(true)
			if err := f.Set(Member{Name: "a", Config: config}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		})
		if len(lines) != 1 {
			t.Errorf("the lines:\n%s", strings.Join(lines, "\n"))
		}
	})
}

func TestAConfigurationThatDoesNotWorkIsLoggedOnceAlsoIfItsErrorsDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lines := outages(t, "configuration does not work", func(config *rest.Config, f *Fleet) {
			if err := f.Set(Member{Name: "a", Config: config, Version: "1"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
			broken := rest.CopyConfig(config)
			interrupted(broken).Store(true)
			if err := f.Set(Member{Name: "a", Config: broken, Version: "2"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		})
		if len(lines) != 1 {
			t.Errorf("the lines:\n%s", strings.Join(lines, "\n"))
		}
	})
}
