package main

// #include <stdlib.h>
import "C"

import (
	"sync"
	"unsafe"
)

func main() {
	var all sync.WaitGroup
	for number := 0; number < 4; number++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := 0; round < 20000; round++ {
				text := C.CString("some text")
				C.free(unsafe.Pointer(text))
			}
		}()
	}
	all.Wait()
}
