package fleet

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"

	"github.com/kates-go/kates/kates"
)

func TestNothingIsKeptOfClustersThatHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, k := newFleet(t, Options{}), newCluster(t, "1")
		plan, err := f.plan("", logr.Discard(), nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &many{
			fleet: f, plan: plan, log: logr.Discard(),
			loop: func(p *place, _ *Cluster, _ []kates.RunOption) (func(context.Context) error, func()) {
				return func(ctx context.Context) error {
					p.known.Called("key")
					<-ctx.Done()
					return nil
				}, func() {}
			},
			farewell: func(context.Context, Key) error { return nil },
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.start(ctx, func(err error) error { return err }) }()
		for i := range 300 {
			name := fmt.Sprint(i)
			if err := f.Set(Member{Name: name, Client: k.Client}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			f.Remove(name)
			synctest.Wait()
			if len(m.places) > 0 {
				t.Fatalf("after %d clusters: %d are kept", i+1, len(m.places))
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) && err != nil {
			t.Error(err)
		}
	})
}
