package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// workers is how many requests of a Load are under way at once.
const workers = 16

// Load fills an API server and changes what it holds. Its methods may be called from several
// goroutines.
type Load struct {
	client kubernetes.Interface
	pods   int
}

// New returns a load of pods on the server of the configuration, which should have no rate limit.
// It makes no request.
func New(config *rest.Config, pods int) (*Load, error) {
	c := rest.CopyConfig(config)
	c.ContentType, c.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("make a client of the load: %w", err)
	}
	return &Load{client: client, pods: pods}, nil
}

// Pods returns the number of pods.
func (l *Load) Pods() int { return l.pods }

// Fill creates everything with two writers, as a ReplicaSet controller and a kubelet do, so that
// the managed fields come from the server.
func (l *Load) Fill(ctx context.Context) error {
	for i := range namespaces {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace(i)}}
		if _, err := l.client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("fill the server: %w", err)
		}
	}
	err := parallel(ctx, l.pods, l.fillPod)
	if err == nil {
		err = parallel(ctx, l.pods/perApp, l.fillApp)
	}
	if err != nil {
		return fmt.Errorf("fill the server: %w", err)
	}
	return nil
}

func (l *Load) fillPod(ctx context.Context, i int) error { return l.fillPodIn(ctx, Namespace(i), i) }

func (l *Load) fillPodIn(ctx context.Context, namespace string, i int) error {
	pods, pod := l.client.CoreV1().Pods(namespace), Pod(i)
	pod.Namespace = namespace
	p, err := pods.Create(ctx, pod, metav1.CreateOptions{FieldManager: "kube-controller-manager"})
	if err != nil {
		return err
	}
	p.Status = podStatus(i)
	_, err = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{FieldManager: "kubelet"})
	return err
}

func (l *Load) fillApp(ctx context.Context, i int) error {
	options := metav1.CreateOptions{FieldManager: "helm"}
	if _, err := l.client.CoreV1().Services(Namespace(i)).Create(ctx, Service(i), options); err != nil {
		return err
	}
	_, err := l.client.CoreV1().ConfigMaps(Namespace(i)).Create(ctx, ConfigMap(i), options)
	return err
}

// Change writes a mark to each of the pods, and returns when the server has stored the last one.
// A pod that is named twice ends with the later mark.
func (l *Load) Change(ctx context.Context, changes []Change) error {
	// Each worker has its own pods, so that the changes of one pod stay in order.
	byWorker := make([][]Change, workers)
	for _, c := range changes {
		w := c.Pod % workers
		byWorker[w] = append(byWorker[w], c)
	}
	return parallel(ctx, workers, func(ctx context.Context, w int) error {
		for _, c := range byWorker[w] {
			if err := l.mark(ctx, c); err != nil {
				return err
			}
		}
		return nil
	})
}

// Timed writes the time into one pod, as the mark that [Stamp] makes, and returns the mark.
func (l *Load) Timed(ctx context.Context, pod int) (string, error) {
	c := Change{Pod: pod, Mark: Stamp(time.Now())}
	return c.Mark, l.mark(ctx, c)
}

// Change is one write to one pod.
type Change struct {
	Pod  int
	Mark string
}

// Spread returns n changes with the marks base-0, base-1 and so on, over all pods in turn from
// first.
func (l *Load) Spread(base string, first, n int) []Change {
	changes := make([]Change, n)
	for i := range changes {
		changes[i] = Change{Pod: (first + i) % l.pods, Mark: base + "-" + strconv.Itoa(i)}
	}
	return changes
}

// MarksOf returns what the pods show after the changes, by namespace/name.
func MarksOf(changes []Change) map[string]string {
	marks := make(map[string]string, len(changes))
	for _, c := range changes {
		marks[Key(c.Pod)] = c.Mark
	}
	return marks
}

// Stamp returns a mark that contains a time. StampedAt reads it.
func Stamp(t time.Time) string { return "t" + strconv.FormatInt(t.UnixNano(), 10) }

// StampedAt returns the time in a mark made by Stamp.
func StampedAt(mark string) (time.Time, error) {
	n, err := strconv.ParseInt(mark[min(1, len(mark)):], 10, 64)
	if err != nil || mark[0] != 't' {
		return time.Time{}, fmt.Errorf("the mark %q is not a time", mark)
	}
	return time.Unix(0, n), nil
}

// MarkPatch returns the JSON merge patch that writes a mark.
func MarkPatch(mark string) []byte {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{Mark: mark}}})
	if err != nil {
		panic(err) // it contains only strings
	}
	return patch
}

func (l *Load) mark(ctx context.Context, c Change) error {
	_, err := l.client.CoreV1().Pods(Namespace(c.Pod)).Patch(ctx, PodName(c.Pod), types.MergePatchType, MarkPatch(c.Mark),
		metav1.PatchOptions{FieldManager: "bench"})
	if err != nil {
		return fmt.Errorf("change pod %s: %w", PodName(c.Pod), err)
	}
	return nil
}

// parallel calls f for 0 to n-1 from a few goroutines. It returns the first error when all calls
// are done. After an error it begins no further call.
func parallel(ctx context.Context, n int, f func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for i := range next {
				if err := f(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}

// Sizes are the mean sizes of a pod as the server stores and sends it.
type Sizes struct {
	JSON, Protobuf int
}

// Measure reads some pods and returns their mean sizes.
func (l *Load) Measure(ctx context.Context) (Sizes, error) {
	list, err := l.client.CoreV1().Pods(Namespace(0)).List(ctx, metav1.ListOptions{Limit: 20})
	if err != nil {
		return Sizes{}, fmt.Errorf("measure pods: %w", err)
	}
	var s Sizes
	for _, p := range list.Items {
		text, err := json.Marshal(&p)
		if err != nil {
			return Sizes{}, fmt.Errorf("measure pods: %w", err)
		}
		s.JSON += len(text)
		s.Protobuf += p.Size()
	}
	if n := len(list.Items); n > 0 {
		s.JSON, s.Protobuf = s.JSON/n, s.Protobuf/n
	}
	return s, nil
}
