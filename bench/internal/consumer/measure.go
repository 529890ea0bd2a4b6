package consumer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/bench/internal/usage"
	"github.com/kates-go/kates/bench/internal/workload"
)

func (s *server) bootstrap(ctx context.Context) (Answer, error) {
	s.idle = usage.LiveBytes()
	before, err := usage.CPUSeconds()
	if err != nil {
		return Answer{}, err
	}
	start := time.Now()
	if err := s.consumer.Start(ctx, s.config); err != nil {
		return Answer{}, err
	}
	view, err := s.consumer.Snapshot(ctx)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Seconds: time.Since(start).Seconds(), Objects: view.Objects, Requests: s.requests.soFar()}
	a.Received = float64(s.requests.received.Load())
	s.objects = view.Objects
	after, err := usage.CPUSeconds()
	if err != nil {
		return Answer{}, err
	}
	a.CPU = after - before
	a.PeakBytes, err = usage.PeakBytes()
	return a, err
}

// drain reads what has already arrived, so that the next signal means something new.
func (s *server) drain(ctx context.Context) (View, error) {
	for {
		view, err := s.consumer.Snapshot(ctx)
		if err != nil {
			return View{}, err
		}
		select {
		case <-s.consumer.Changed():
		default:
			return view, nil
		}
	}
}

func (s *server) refresh(ctx context.Context, c Command) (Answer, error) {
	marks := parseMarks(c.Marks)
	allocated := usage.AllocatedBytes()
	start := time.Now()
	view, err := s.consumer.Snapshot(ctx)
	took := time.Since(start)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Seconds: took.Seconds(), Bytes: usage.AllocatedBytes() - allocated, Objects: view.Objects, Missing: marks.missing(view)}
	if view.Clone != nil {
		start = time.Now()
		view.Clone()
		a.CloneSeconds = time.Since(start).Seconds()
	}
	return a, nil
}

// await takes the time when the consumer returns a snapshot, before it looks into the snapshot.
func (s *server) await(ctx context.Context, c Command) (Answer, error) {
	pod := parseKey(c.Pod)
	view, err := s.drain(ctx)
	if err != nil {
		return Answer{}, err
	}
	before := markOf(view, pod)
	if err := s.out.Encode(Answer{}); err != nil {
		return Answer{}, err
	}
	deadline := time.After(seconds(c.Seconds))
	for {
		select {
		case <-s.consumer.Changed():
		case <-deadline:
			return Answer{}, fmt.Errorf("no change of %s within %v s", c.Pod, c.Seconds)
		}
		view, err := s.consumer.Snapshot(ctx)
		now := time.Now().UnixNano()
		if err != nil {
			return Answer{}, err
		}
		if mark := markOf(view, pod); mark != before {
			return Answer{Mark: mark, UnixNano: now}, nil
		}
	}
}

func (s *server) own(ctx context.Context, c Command) (Answer, error) {
	writer, ok := s.consumer.(OwnWriter)
	if !ok {
		return Answer{}, nil
	}
	pod := parseKey(c.Pod)
	var a Answer
	for range c.Times {
		if _, err := s.drain(ctx); err != nil {
			return Answer{}, err
		}
		mark := workload.Stamp(time.Now())
		if err := writer.WriteMark(ctx, pod.Namespace, pod.Name, mark); err != nil {
			return Answer{}, err
		}
		asked := time.Now()
		read, err := writer.Read(pod.Namespace, pod.Name)
		a.Reads = append(a.Reads, time.Since(asked).Seconds())
		if err != nil {
			return Answer{}, err
		}
		if read.GetAnnotations()[workload.Mark] != mark {
			return Answer{}, errors.New("an own write was not in what was read next")
		}
		start := time.Now()
		view, err := writer.Snapshot(ctx)
		took := time.Since(start)
		if err != nil {
			return Answer{}, err
		}
		if markOf(view, pod) != mark {
			return Answer{}, errors.New("an own write was not in the next snapshot")
		}
		a.Samples = append(a.Samples, took.Seconds())
		a.Mark = mark
	}
	return a, nil
}

// markSet is what objects must show. The load uses each name for one kind only.
type markSet map[types.NamespacedName]string

func parseKey(key string) types.NamespacedName {
	namespace, name, _ := strings.Cut(key, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

func parseMarks(marks map[string]string) markSet {
	set := make(markSet, len(marks))
	for key, mark := range marks {
		set[parseKey(key)] = mark
	}
	return set
}

// missing returns how many objects of the set do not show their mark.
func (m markSet) missing(v View) int {
	n := len(m)
	for o := range v.All {
		if mark, ok := m[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}]; ok && o.GetAnnotations()[workload.Mark] == mark {
			n--
		}
	}
	return n
}

// markOf returns the mark of a pod, or "".
func markOf(v View, key types.NamespacedName) string {
	for o := range v.All {
		if o.GetName() == key.Name && o.GetNamespace() == key.Namespace {
			return o.GetAnnotations()[workload.Mark]
		}
	}
	return ""
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
