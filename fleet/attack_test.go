package fleet

import (
	"strings"
	"testing"
	"testing/synctest"
	"unicode"
)

// A source whose objects strangers write takes no name away that another source, or the program,
// has given to a cluster.
func TestASourceTakesNoNameThatIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := make(scripted), make(scripted)
		f := newFleet(t, Options{Sources: []Source{one, two}})
		victim, evil, own := newCluster(t, "1").Client, newCluster(t, "2").Client, newCluster(t, "3").Client
		one <- nil
		two <- []Member{{Name: "x", Client: victim}}
		if err := f.Set(Member{Name: "y", Client: own}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		x, y := f.Cluster("x"), f.Cluster("y")
		one <- []Member{{Name: "x", Client: evil}, {Name: "y", Client: evil}}
		synctest.Wait()
		if f.Cluster("x") != x || f.Cluster("y") != y || x.Client() != victim || y.Client() != own {
			t.Fatalf("a name is taken away: %s", f.Status())
		}
		if err := f.Status().Err(); err == nil || !strings.Contains(err.Error(), "is left out") {
			t.Errorf("the status: %v", err)
		}
		two <- []Member{{Name: "x", Client: victim}, {Name: "z", Client: victim}}
		synctest.Wait()
		if f.Cluster("x") != x {
			t.Error("its own source has taken the name away")
		}
		two <- nil
		synctest.Wait()
		if f.Cluster("x").Client() != evil {
			t.Error("a free name goes to nobody")
		}
		two <- []Member{{Name: "x", Client: victim}}
		synctest.Wait()
		if f.Cluster("x").Client() != evil {
			t.Error("who has the name now does not keep it")
		}
	})
}

// It does not matter which source speaks first after a start.
func TestTheFirstWordOfAnEarlierSourceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := make(scripted), make(scripted)
		f := newFleet(t, Options{Sources: []Source{one, two}})
		a, b := newCluster(t, "1").Client, newCluster(t, "2").Client
		two <- []Member{{Name: "x", Client: b}}
		synctest.Wait()
		one <- []Member{{Name: "x", Client: a}}
		synctest.Wait()
		if f.Cluster("x").Client() != a {
			t.Errorf("the later source has the name: %s", f.Status())
		}
	})
}

func TestTheStatusOfAFleetDoesNothingToATerminal(t *testing.T) {
	const words = "no\x1b[2J\nFAKE  up\u202egnirts\u2066\u009b"
	s := Status{
		Sources:  []SourceStatus{{Name: words, Error: words}},
		Clusters: []ClusterStatus{{Name: words, UID: words, Health: Health{Phase: "down", Error: words, Rotation: words}}, {Name: words, Health: Health{Rotation: words}}, {Name: words, Health: Health{Phase: Up}, Missing: words}},
	}
	targets := TargetsStatus{Watches: []TargetWatchStatus{{Cluster: words, Kind: words, Error: words, Watched: []string{words}}, {Cluster: words, Kind: words, Targets: 2}}}
	for what, text := range map[string]string{"table": s.String(), "error": s.Err().Error(), "targets": targets.String(), "error of targets": targets.Err().Error()} {
		for _, r := range text {
			if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("the %s has %U: %q", what, r, text)
				break
			}
		}
		if strings.Contains(text, "\nFAKE") {
			t.Errorf("a line of the %s is another's: %s", what, text)
		}
	}
}
