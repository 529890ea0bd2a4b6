// Command statuspage serves the status page of a client.
package main

import (
	"fmt"
	"log"
	"net/http/httptest"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
	"github.com/kates-go/kates/kates/page"
)

func main() {
	server, err := katestest.StartServer()
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	status := page.New()
	defer status.Close()
	client, err := kates.NewClientFromRESTConfig(server.Config, kates.WithObserver(status))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	answer := httptest.NewRecorder()
	status.ServeHTTP(answer, httptest.NewRequest("GET", "http://localhost/?format=json", nil))
	fmt.Println(answer.Code, answer.Header().Get("Content-Type"))
	// Output: 200 application/json
}
