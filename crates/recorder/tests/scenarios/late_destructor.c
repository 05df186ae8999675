/* Is linked to a library that continues after this program's end. */
void use_late_library(void);

int main(void) {
    use_late_library();
    return 0;
}
