package consumer

import (
	"context"
	"log/slog"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/bench/internal/workload"
	"github.com/kates-go/kates/kates"
)

// snapshotter uses kates, with snapshots of type S.
type snapshotter[S any] struct {
	options   []kates.Option
	view      func(*S) View
	open      func(context.Context, *kates.Client) (reader, error)
	pods      reader
	client    *kates.Client
	snapshots *kates.Snapshots[S]
	last      *S
}

func newKates(options ...kates.Option) func() Consumer {
	return func() Consumer {
		return &snapshotter[Typed]{options: options, view: (*Typed).view, open: openPods[*kates.Pod]}
	}
}

// WarmEnv names the folder of warm starts.
const WarmEnv = "KATES_BENCH_WARM"

func newKatesWarm() Consumer {
	return newKates(kates.WithWarmStart(kates.WarmStartDir(os.Getenv(WarmEnv))))()
}

// untyped has the same kinds as Typed, as nested maps.
type untyped struct {
	Pods       []*kates.Unstructured `kates:"pods"`
	Services   []*kates.Unstructured `kates:"services"`
	ConfigMaps []*kates.Unstructured `kates:"configmaps"`
}

func newKatesUntyped() func() Consumer {
	return func() Consumer {
		return &snapshotter[untyped]{open: openPods[*kates.Unstructured], view: func(u *untyped) View {
			return View{
				Objects: len(u.Pods) + len(u.Services) + len(u.ConfigMaps),
				All:     chain(objects(u.Pods), objects(u.Services), objects(u.ConfigMaps)),
			}
		}}
	}
}

func (s *snapshotter[S]) Start(ctx context.Context, config *rest.Config) error {
	options := append([]kates.Option{kates.WithInterval(0), kates.WithLogger(slog.New(slog.DiscardHandler))}, s.options...)
	var err error
	if s.client, err = kates.NewClientFromRESTConfig(config, options...); err != nil {
		return err
	}
	if s.snapshots, err = kates.Watch[S](ctx, s.client); err != nil {
		return err
	}
	for {
		select {
		case <-s.snapshots.Changed():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		first := new(S)
		// Update returns true for the first complete snapshot, even if it is empty.
		if complete, err := s.snapshots.Update(ctx, first); err != nil || complete {
			s.last = first
			return err
		}
	}
}

// Close ends the client. A warm one keeps what it holds.
func (s *snapshotter[S]) Close() {
	if s.client != nil {
		s.client.Close()
	}
}

func (s *snapshotter[S]) Changed() <-chan struct{} { return s.snapshots.Changed() }

func (s *snapshotter[S]) Snapshot(ctx context.Context) (View, error) {
	now := new(S)
	if _, err := s.snapshots.Update(ctx, now); err != nil {
		return View{}, err
	}
	s.last = now
	return s.view(now), nil
}

// reader reads a pod by name.
type reader func(namespace, name string) (metav1.Object, error)

// openPods opens a reader on the running watch of pods.
func openPods[T metav1.Object](ctx context.Context, client *kates.Client) (reader, error) {
	pods, err := kates.NewLister[T](ctx, client, kates.Query{Kind: "pods"})
	if err != nil {
		return nil, err
	}
	return func(namespace, name string) (metav1.Object, error) { return pods.Get(namespace, name) }, nil
}

func (s *snapshotter[S]) Read(namespace, name string) (metav1.Object, error) {
	return s.pods(namespace, name)
}

func (s *snapshotter[S]) WriteMark(ctx context.Context, namespace, name, mark string) error {
	if s.pods == nil {
		var err error
		if s.pods, err = s.open(ctx, s.client); err != nil {
			return err
		}
	}
	pod := &kates.Pod{}
	pod.Namespace, pod.Name = namespace, name
	return s.client.Patch(ctx, pod, kates.MergePatchType, workload.MarkPatch(mark), nil)
}
