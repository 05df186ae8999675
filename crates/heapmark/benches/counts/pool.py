import multiprocessing

def square(number):
    return [number * number] * 100

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        pool.map(square, range(2000))
        pool.close()
        pool.join()
