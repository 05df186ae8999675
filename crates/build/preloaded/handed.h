/* Opens the files that heapmark hands to the processes of a tree. An environment variable contains the address at which to
 * ask for a file, and its device, inode and path (crates/wire/src/lent.rs). A process that may not open the file, since it
 * runs as another user, asks heapmark for it. If another file now lies at that path, it is not opened. */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { ADDRESS_BYTES = 24, SECRET_BYTES = 32, QUESTION_BYTES = SECRET_BYTES + 8 };

/* Returns the number in a line of /proc/self/status; -1 if there is none. */
static long status_number(const char *name) {
    static char text[8192];
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    close(file);
    text[length < 0 ? 0 : length] = 0;
    const char *at = strstr(text, name);
    return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

static int asked(const char *word) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 2};
    char question[QUESTION_BYTES] = {0}, byte;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } beside;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr answer = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &beside, .msg_controllen = sizeof beside};
    int file = -1, stream = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (stream < 0) return -1;
    setsockopt(stream, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(stream, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    /* The first byte stays zero, which makes this an abstract address. */
    memcpy(address.sun_path + 1, word, ADDRESS_BYTES);
    memcpy(question, word + ADDRESS_BYTES, SECRET_BYTES);
    if (!connect(stream, (struct sockaddr *)&address, offsetof(struct sockaddr_un, sun_path) + 1 + ADDRESS_BYTES) &&
        send(stream, question, QUESTION_BYTES, MSG_NOSIGNAL) == QUESTION_BYTES && recvmsg(stream, &answer, MSG_CMSG_CLOEXEC) == 1) {
        struct cmsghdr *head = CMSG_FIRSTHDR(&answer);
        if (head && head->cmsg_type == SCM_RIGHTS) memcpy(&file, CMSG_DATA(head), sizeof file);
    }
    close(stream);
    return file;
}

/* Opens the file that `told` describes; returns its descriptor, or -1. */
static int handed(const char *told, int flags) {
    struct stat found;
    char *rest;
    if (!told || strlen(told) < ADDRESS_BYTES + SECRET_BYTES) return -1;
    long filters = strtol(told + ADDRESS_BYTES + SECRET_BYTES, &rest, 10);
    unsigned long device = strtoul(rest, &rest, 10), inode = strtoul(rest, &rest, 10);
    if (*rest != ' ') return -1;
    /* O_NONBLOCK prevents waiting for the other end of a FIFO that may lie there. */
    int file = open(rest + 1, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file >= 0 && !fstat(file, &found) && found.st_dev == device && found.st_ino == inode) return file;
    close(file);
    /* A process with more seccomp filters than heapmark might be killed for asking. */
    long own = status_number("\nSeccomp_filters:");
    if (own < 0) own = status_number("\nSeccomp:");
    return own == filters ? asked(told) : -1;
}
