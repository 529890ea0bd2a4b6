package apiserver_test

import (
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/kates/katestest/apiserver"
)

func ExampleStartAPIServer() {
	// TestX in your code
	_ = func(t *testing.T) {
		cluster := apiserver.StartAPIServer(t)
		client, err := kubernetes.NewForConfig(cluster.Config) // or kates.NewClientFromRESTConfig
		if err != nil {
			t.Fatal(err)
		}
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "settings-"}}
		made, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Log(made.Name, made.UID, made.ResourceVersion)
	}
}

func ExampleShare() {
	// a variable of the package
	var shared = apiserver.Share(
		apiserver.WithCRDs("testdata/crds"),
		apiserver.WithFlags("feature-gates=ShardedListAndWatch=true"))

	// TestMain in your code
	_ = func(m *testing.M) { os.Exit(shared.Run(m)) }

	// each test
	_ = func(t *testing.T) {
		t.Parallel()
		cluster := shared.Cluster(t)
		client, err := kubernetes.NewForConfig(cluster.Config)
		if err != nil {
			t.Fatal(err)
		}
		secrets := client.CoreV1().Secrets(cluster.Namespace(t)) // no other test looks there
		if _, err := secrets.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
